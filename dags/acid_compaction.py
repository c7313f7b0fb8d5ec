"""The DAG acid_compaction, for a DAGs folder; Airflow reads a file that names airflow and dag."""

from airflow_provider_acid.installed_dags import acid_compaction

__all__ = ["acid_compaction"]
