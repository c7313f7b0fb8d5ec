"""Connections to the Hive metastore in Airflow's terms."""
