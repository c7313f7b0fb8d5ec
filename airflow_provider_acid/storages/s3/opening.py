"""Opens locations on S3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_acid.storages.s3.options import S3Options

if TYPE_CHECKING:
    from airflow_provider_acid.storages.s3.storage import S3Storage


def open_s3(location: str, options: S3Options) -> S3Storage:
    """The storage of a location; errors as of its class."""
    # Importing pyarrow takes half a second, which no DAG file's parsing is worth.
    from airflow_provider_acid.storages.s3.storage import S3Storage

    return S3Storage(location, options, options.credentials)
