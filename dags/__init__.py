"""DAGs that work as they are; installed as ``airflow_provider_acid.example_dags``."""
