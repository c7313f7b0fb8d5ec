"""The Hive metastore: typed calls, transactions with heartbeats, and the compaction queue."""
