"""The sweep of all tables that ``[hive_acid]`` names."""

from __future__ import annotations

from airflow_provider_acid.installed_dags.sweep import acid_compaction_dag

dag = acid_compaction_dag("acid_compaction")
