"""The PySpark application, installed as ``airflow_provider_acid.spark_jobs``."""
