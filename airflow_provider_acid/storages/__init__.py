"""One module per kind of storage, each with a class that keeps :class:`~airflow_provider_acid.filesystem.Storage`."""
