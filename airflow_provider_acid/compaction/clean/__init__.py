"""Hive's Cleaner: what is obsolete is deleted once no reader needs it."""
