"""Hive ACID as values and pure functions: no Airflow, Spark, network or clock in here."""
