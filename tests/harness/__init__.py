"""What the integration tests and ``./quickstart`` run against: a real Hive Metastore, started from Python.

Nothing here is installed with the package, and nothing here needs pytest.
"""
