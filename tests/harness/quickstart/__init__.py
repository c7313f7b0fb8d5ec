"""What ``./quickstart`` runs: a metastore with demonstration tables, the DAG on them, and a look at what it changed."""
