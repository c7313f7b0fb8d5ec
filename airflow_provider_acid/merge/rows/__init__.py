"""Rows of several files as one schema, exactly as Hive reads them."""
