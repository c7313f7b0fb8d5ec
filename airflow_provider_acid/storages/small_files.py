"""Reading whole files that should be small, without trusting that they are."""

from __future__ import annotations

import io
from typing import BinaryIO

from airflow_provider_acid.exceptions import CorruptFileError

SIDE_FILE_BYTES = 1024 * 1024
"""Most bytes of what is read whole; Hive's side files, journals and ``batch.json`` have less than a thousandth."""

EXCHANGE_FILE_BYTES = 256 * 1024 * 1024
"""Most bytes of a plan, a result, a list of names or a day's history: a plan takes 200 for a file, so a million fit."""


def read_whole(file: BinaryIO, name: str, most_bytes: int) -> bytes:
    """All of a file, from its beginning.

    :param name: the file's path, for the error.
    :raises CorruptFileError: it has more bytes; nothing of it was read.
    """
    size_bytes = file.seek(0, io.SEEK_END)
    if size_bytes > most_bytes:
        raise CorruptFileError(
            name,
            f"has {size_bytes} bytes, and a file of its kind has {most_bytes} at most",
            "find out what wrote it and move it out of the table",
        )
    file.seek(0)
    return file.read(size_bytes)
