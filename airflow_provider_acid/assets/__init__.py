"""Hive ACID tables as Airflow assets."""
