"""The DAG acid_housekeeping, for a DAGs folder; Airflow reads a file that names airflow and dag."""

from airflow_provider_acid.installed_dags import acid_housekeeping

__all__ = ["acid_housekeeping"]
