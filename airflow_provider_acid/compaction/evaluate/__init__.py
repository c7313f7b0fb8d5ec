"""Hive's Initiator: which partitions are due, and for what."""
