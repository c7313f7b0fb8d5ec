"""The page "Hive ACID" in Airflow's UI."""
