"""Hive's Initiator, Worker and Cleaner as plain Python: what the Airflow classes and any script call.

Airflow is not imported here.
"""
