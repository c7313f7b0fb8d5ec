"""Opens locations on HDFS, by the library that the options name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.hdfs.webhdfs import WebHdfsStorage
from airflow_provider_acid.storages.paths import split_location

if TYPE_CHECKING:
    from airflow_provider_acid.storages.hdfs.arrow_hdfs import ArrowHdfsStorage


def open_hdfs(location: str, options: HdfsOptions) -> WebHdfsStorage | ArrowHdfsStorage:
    """The storage of a location; errors as of the two classes."""
    if options.libhdfs and split_location(location).scheme == "hdfs":
        # Importing pyarrow takes half a second, which no DAG file's parsing is worth.
        from airflow_provider_acid.storages.hdfs.arrow_hdfs import ArrowHdfsStorage

        return ArrowHdfsStorage(location, options)
    return WebHdfsStorage(location, options)
