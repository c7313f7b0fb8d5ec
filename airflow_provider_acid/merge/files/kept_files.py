"""A partition's small files, each fetched once for a task that reads it several times.

A merge looks at its sources before it reads them, and at what it wrote in more than one way. Where reading is a call
over a network, that is most of what a small partition costs its task. What is kept was read from the store after it was
written there, and no file of a transactional table changes.
"""

from __future__ import annotations

import io
from typing import Any, BinaryIO, cast

from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.storages.ranged_reader import FIRST_BYTES, RangedReader

KEPT_BYTES = 8 * 1024 * 1024
"""Most bytes that one task keeps."""


def keeping(storage: Storage) -> Storage:
    """The same storage, for one task.

    Where a reading is a call, files of no more than ``FIRST_BYTES`` are fetched whole and kept, up to
    :data:`KEPT_BYTES`.
    """
    return cast(Storage, _Keeping(storage))


class _Keeping:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._kept: dict[str, bytes] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def open_input(self, path: str) -> BinaryIO:
        if path in self._kept:
            return io.BytesIO(self._kept[path])
        file = self._storage.open_input(path)
        if not isinstance(file, RangedReader):
            return file
        size_bytes = file.seek(0, io.SEEK_END)
        if not 0 < size_bytes <= min(FIRST_BYTES, KEPT_BYTES - sum(map(len, self._kept.values()))):
            file.seek(0)
            return file
        with file:
            file.seek(0)
            self._kept[path] = file.read(size_bytes) or b""
        return io.BytesIO(self._kept[path])
