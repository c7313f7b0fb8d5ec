"""Operators that compact partitions and clean up after compactions."""
