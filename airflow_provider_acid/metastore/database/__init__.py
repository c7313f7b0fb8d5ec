"""The metastore's own database, where a site gives access to it."""
