"""How connections to a metastore are protected, and who the client is there."""
