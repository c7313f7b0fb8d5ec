"""Triggers that wait without holding a worker slot."""
