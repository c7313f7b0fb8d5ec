"""What operator and Spark application share of one run: its directory, key, archive and script."""
