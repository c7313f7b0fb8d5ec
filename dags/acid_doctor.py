"""The DAG acid_doctor, for a DAGs folder; Airflow reads a file that names airflow and dag."""

from airflow_provider_acid.installed_dags import acid_doctor

__all__ = ["acid_doctor"]
