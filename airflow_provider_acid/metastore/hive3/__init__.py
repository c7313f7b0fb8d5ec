"""The compaction queue of Hive 3.1, which is reached through the database alone."""
