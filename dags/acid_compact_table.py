"""The DAG acid_compact_table, for a DAGs folder; Airflow reads a file that names airflow and dag."""

from airflow_provider_acid.installed_dags import acid_compact_table

__all__ = ["acid_compact_table"]
