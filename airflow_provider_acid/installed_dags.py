"""The DAGs that come with this package, for a DAG file of one line that imports them."""

from airflow_provider_acid.example_dags.acid_compact_table import dag as acid_compact_table
from airflow_provider_acid.example_dags.acid_compaction import dag as acid_compaction
from airflow_provider_acid.example_dags.acid_housekeeping import dag as acid_housekeeping

__all__ = ["acid_compact_table", "acid_compaction", "acid_housekeeping"]
