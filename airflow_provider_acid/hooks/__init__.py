"""Connections to the outside."""
