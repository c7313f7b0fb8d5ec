"""The Spark application: the driver of a run, and its tasks."""
