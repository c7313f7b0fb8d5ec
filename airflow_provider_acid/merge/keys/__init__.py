"""Row keys and deleted keys: which rows live."""
