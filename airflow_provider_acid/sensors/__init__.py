"""Sensors that find the partitions due for compaction."""
