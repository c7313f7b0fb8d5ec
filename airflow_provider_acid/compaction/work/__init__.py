"""Hive's Worker: partitions of a batch from claim to published result."""
