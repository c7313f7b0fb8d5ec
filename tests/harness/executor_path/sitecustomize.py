"""Makes the first tasks that write a certain file wait, or fail; Python loads it from its ``PYTHONPATH``.

``ACID_FAULTS`` is a JSON array of objects, see :class:`tests.harness.executor_faults.Fault`, quoted as in a URL, since
YARN's scripts take quotes away. Only tests set it, for the Python workers of executors, which nothing else reaches.
"""

from __future__ import annotations

import importlib.abc
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO
from urllib.parse import unquote

_PATCHED = {
    "airflow_provider_acid.storages.local": "LocalStorage",
    "airflow_provider_acid.storages.hdfs.webhdfs": "WebHdfsStorage",
}
"""By their modules, the storages whose writers have faults."""


class _AfterImport(importlib.abc.MetaPathFinder):
    """Hands the module over as soon as it is loaded."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _PATCHED:
            return None
        spec = PathFinder.find_spec(name, path)
        assert spec is not None
        assert spec.loader is not None
        loader = spec.loader

        def load_and_patch(module: ModuleType) -> None:
            # Of a zip file, all modules of a folder have one loader.
            del loader.exec_module
            loader.exec_module(module)
            _patch(getattr(module, _PATCHED[name]))

        loader.exec_module = load_and_patch  # type: ignore[method-assign]
        return spec


def _patch(storage_class: Any) -> None:
    create = storage_class.create
    faults = [_Fault(**fault) for fault in json.loads(unquote(os.environ["ACID_FAULTS"]))]

    @contextmanager
    def with_faults(storage: Any, path: str) -> Iterator[BinaryIO]:
        name = f"{storage.location}/{path}"
        fault = next((fault for fault in faults if re.search(fault.file, name)), None)
        number = fault.begin() if fault is not None else None
        if fault is None or number is None:
            with create(storage, path) as file:
                yield file
            return
        try:
            with create(storage, path) as file:
                yield file
                if fault.moment == "writing":
                    fault.strike(number)
            if fault.moment == "written":
                fault.strike(number)
        finally:
            fault.tell("ended", number)

    storage_class.create = with_faults


@dataclass(frozen=True)
class _Fault:
    file: str
    folder: str
    moment: str
    tasks: int
    fails: bool

    def begin(self) -> int | None:
        """Which of its tasks this one is, if it is one of them."""
        for number in range(self.tasks):
            with suppress(FileExistsError):
                self.tell("begun", number)
                return number
        return None

    def strike(self, number: int) -> None:
        self.tell("struck", number)
        if self.fails:
            raise OSError("a fault of the tests")
        while not Path(self.folder, "released").exists():
            time.sleep(0.02)

    def tell(self, what: str, number: int) -> None:
        with Path(self.folder, f"{what}-{number}").open("x") as told:
            told.write(f"{os.getpid()}\n")


if "ACID_FAULTS" in os.environ:
    sys.meta_path.insert(0, _AfterImport())
