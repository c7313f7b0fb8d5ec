"""Compaction of Apache Hive ACID tables with Airflow and PySpark.

Importing this package costs nothing and needs nothing: Spark executors import its pure parts.
"""

__version__ = "0.2.0"
