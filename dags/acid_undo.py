"""The DAG acid_undo, for a DAGs folder; Airflow reads a file that names airflow and dag."""

from airflow_provider_acid.installed_dags import acid_undo

__all__ = ["acid_undo"]
