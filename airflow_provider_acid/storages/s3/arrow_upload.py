"""Uploading with Arrow alone, for Spark executors without boto3.

Arrow has no conditions and no way to abort. A stream that is closed, or only collected, after an error, publishes the
parts that had arrived (measured, also after an error of the store's), so that a truncated object would be there. So:

- the bytes are all at hand before the stream is opened, and go into it by one call;
- that call is made in a thread of its own, where no signal raises anything between opening and closing;
- a stream that failed is kept from ever being closed: its upload stays unfinished, which nobody sees, until the
  bucket's lifecycle rule for incomplete uploads removes it.
"""

from __future__ import annotations

import ctypes
import mmap
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

import pyarrow as pa
from pyarrow.fs import S3FileSystem

from airflow_provider_acid.storages.s3.errors import arrow_error


def upload_whole(system: S3FileSystem, name: str, path: str, file: BinaryIO, size_bytes: int) -> None:
    """Make an object of a local file's bytes; replaces what is there.

    :param name: the object's URI, as errors say it.
    :param path: ``bucket/key``.
    :raises StorageError: it could not be made; nothing truncated is there, nor will be.
    """
    with ThreadPoolExecutor(max_workers=1) as thread:
        thread.submit(_upload, system, name, path, file, size_bytes).result()


def _upload(system: S3FileSystem, name: str, path: str, file: BinaryIO, size_bytes: int) -> None:
    stream: pa.NativeFile | None = None
    try:
        if size_bytes == 0:
            stream = system.open_output_stream(path, compression=None)
            stream.close()
            return
        with mmap.mmap(file.fileno(), size_bytes, access=mmap.ACCESS_READ) as content:
            stream = system.open_output_stream(path, compression=None)
            stream.write(content)
            stream.close()
    except BaseException as error:
        if stream is not None:
            _never_close(stream)
        if isinstance(error, OSError):
            raise arrow_error(name, "cannot be written", error) from error
        raise


def _never_close(stream: pa.NativeFile) -> None:
    """Give an object one reference too many: a list of ours would be emptied when the interpreter ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(stream))
