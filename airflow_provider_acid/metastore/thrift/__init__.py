"""The metastore's Thrift service: its wire, its structs, and typed calls."""
