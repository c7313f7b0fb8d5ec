"""How a staged result becomes part of a table, on each kind of store."""
