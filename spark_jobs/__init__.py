"""The Spark application: merges the files of a compaction plan. Executors need pyarrow, pyorc and protobuf only."""
