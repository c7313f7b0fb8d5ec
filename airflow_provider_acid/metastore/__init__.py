"""The Hive metastore as a client, a transaction and a compaction queue."""
