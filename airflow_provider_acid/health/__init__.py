"""What evaluations saw of partitions and what came of compactions, kept as small files for the page in Airflow's UI."""
