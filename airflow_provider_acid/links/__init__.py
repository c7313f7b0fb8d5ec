"""Links of a task: buttons beside its log in Airflow's UI."""
