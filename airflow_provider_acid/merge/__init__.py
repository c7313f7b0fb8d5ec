"""The merge itself: files of a bucket in, one file out. Runs in Spark's executors, without Airflow."""
