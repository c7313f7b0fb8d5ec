"""What a compaction merges into what, as values and pure functions on top of :mod:`~airflow_provider_acid.acid`."""
