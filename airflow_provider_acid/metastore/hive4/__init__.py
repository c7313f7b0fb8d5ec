"""The compaction queue of Hive 4, which speaks Thrift."""
