"""Hive's Worker and Cleaner as operators."""
