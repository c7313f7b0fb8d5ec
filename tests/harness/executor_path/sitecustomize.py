"""Makes the first task that writes a certain file slow, or has it fail; Python loads it from its ``PYTHONPATH``.

``ACID_FAULTS`` is a JSON list of objects, see :class:`tests.harness.executor_faults.Fault`. Only tests set it, for the
Python workers of executors, into which nothing else reaches.
"""

from __future__ import annotations

import importlib.abc
import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

_PATCHED = "airflow_provider_acid.storages.local"


class _AfterImport(importlib.abc.MetaPathFinder):
    """Hands the module over as soon as it is loaded."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != _PATCHED:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)
        assert spec is not None
        assert spec.loader is not None
        loader = spec.loader

        def load_and_patch(module: ModuleType) -> None:
            # Of a zip file, all modules of a folder have one loader.
            del loader.exec_module
            loader.exec_module(module)
            _patch(module)

        loader.exec_module = load_and_patch  # type: ignore[method-assign]
        return spec


def _patch(module: ModuleType) -> None:
    create = module.LocalStorage.create

    @contextmanager
    def with_faults(storage: Any, path: str) -> Iterator[BinaryIO]:
        fault = _fault_of(f"{storage.location}/{path}")
        if fault is None:
            with create(storage, path) as file:
                yield file
            return
        try:
            with create(storage, path) as file:
                yield file
                if fault["moment"] == "writing":
                    _wait(fault)
            if fault["moment"] == "written":
                _wait(fault)
        finally:
            Path(fault["folder"], "over").touch()
        if fault["then"] == "fail":
            raise module.StorageError(path, "cannot be trusted, for a test has said so", "none")
        if fault["then"] == "die":
            os.kill(os.getpid(), signal.SIGKILL)

    module.LocalStorage.create = with_faults


def _fault_of(name: str) -> dict[str, str] | None:
    """What is to happen to this file: something for the first that writes it, nothing for any other."""
    for fault in json.loads(os.environ["ACID_FAULTS"]):
        if re.search(fault["file"], name):
            try:
                with Path(fault["folder"], "first").open("x") as first:
                    first.write(f"{os.getpid()}\n")
            except FileExistsError:
                continue
            return dict(fault)
    return None


def _wait(fault: dict[str, str]) -> None:
    folder = Path(fault["folder"])
    folder.joinpath("waits").touch()
    while not folder.joinpath("go").exists():
        time.sleep(0.02)


if "ACID_FAULTS" in os.environ:
    sys.meta_path.insert(0, _AfterImport())
