"""Makes the first task that writes a certain file wait until it is killed; Python loads it from its ``PYTHONPATH``.

``ACID_FAULT`` is a JSON object, see :class:`tests.harness.executor_faults.Fault`. Only tests set it, for the Python
workers of executors, into which nothing else reaches.
"""

from __future__ import annotations

import importlib.abc
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, NoReturn

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
    fault: dict[str, str] = json.loads(os.environ["ACID_FAULT"])

    @contextmanager
    def with_faults(storage: Any, path: str) -> Iterator[BinaryIO]:
        is_struck = _is_first_of(fault, f"{storage.location}/{path}")
        with create(storage, path) as file:
            yield file
            if is_struck and fault["moment"] == "writing":
                _wait_to_be_killed(fault)
        if is_struck and fault["moment"] == "written":
            _wait_to_be_killed(fault)

    module.LocalStorage.create = with_faults


def _is_first_of(fault: dict[str, str], name: str) -> bool:
    """Whether this file is the fault's, and nobody has begun to write it before."""
    if not re.search(fault["file"], name):
        return False
    try:
        with Path(fault["folder"], "first").open("x") as first:
            first.write(f"{os.getpid()}\n")
    except FileExistsError:
        return False
    return True


def _wait_to_be_killed(fault: dict[str, str]) -> NoReturn:
    Path(fault["folder"], "waits").touch()
    while True:
        time.sleep(1.0)


if "ACID_FAULT" in os.environ:
    sys.meta_path.insert(0, _AfterImport())
