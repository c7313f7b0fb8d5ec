"""HDFS, over WebHDFS and libhdfs."""
