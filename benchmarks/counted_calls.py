"""How often storages are asked by this process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from inspect import isfunction
from typing import Any
from unittest.mock import patch

from airflow_provider_acid.storages.hdfs.webhdfs import WebHdfsStorage
from airflow_provider_acid.storages.local import LocalStorage
from airflow_provider_acid.storages.s3.storage import S3Storage

_KINDS: tuple[type, ...] = (LocalStorage, WebHdfsStorage, S3Storage)


@dataclass
class StorageCalls:
    """Calls of storages by name; what they do to answer one is not counted again."""

    calls: Counter[str] = field(default_factory=Counter)
    _inside: threading.local = field(default_factory=threading.local)

    @classmethod
    @contextmanager
    def counted(cls) -> Iterator[StorageCalls]:
        """Counts as long as the block runs."""
        counts = cls()
        with ExitStack() as patches:
            for kind in _KINDS:
                for name, method in vars(kind).items():
                    if isfunction(method) and not name.startswith("_"):
                        patches.enter_context(patch.object(kind, name, counts._counting(name, method)))
            yield counts

    def _counting(self, name: str, method: Any) -> Any:
        @wraps(method)
        def ask(*arguments: Any, **options: Any) -> Any:
            if getattr(self._inside, "is_asked", False):
                return method(*arguments, **options)
            self.calls[name] += 1
            self._inside.is_asked = True
            try:
                return method(*arguments, **options)
            finally:
                self._inside.is_asked = False

        return ask
