"""A kind of store that nobody has: one class and one line of registration, and compactions work on it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyorc
import pytest

from airflow_provider_acid import filesystem
from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.compaction.publish.publisher import publisher_on
from airflow_provider_acid.compaction.publish.staging import open_staging, staging_name
from airflow_provider_acid.exceptions import NameTakenError, StorageError
from airflow_provider_acid.filesystem import Storages, StoreKind
from airflow_provider_acid.storages.rules import StoreRules
from airflow_provider_acid.storages.small_files import SIDE_FILE_BYTES, read_whole
from tests.harness.plain_job import run_plainly
from tests.unit.merge.acid_files import Partition, delete, insert

SHELVES: dict[str, dict[str, bytes | None]] = {}
"""Contents by path, of each shelf; None for a directory."""


@dataclass(frozen=True)
class AtticOptions:
    shelf: str = "top"

    def to_json(self) -> dict[str, object]:
        return asdict(self) if self != AtticOptions() else {}

    @classmethod
    def from_json(cls, data: Any) -> AtticOptions:
        return cls(**data)


class AtticStorage:
    """Holds everything in memory, and renames."""

    rules = StoreRules()

    def __init__(self, location: str, options: AtticOptions) -> None:
        self.location = location
        self._at = SHELVES.setdefault(options.shelf + location, {})

    def home(self) -> str:
        return "attic:///home"

    def may_change(self) -> bool:
        return True

    def list(self, path: str = "", into: Callable[[str], bool] | None = None) -> Listing:
        found = {name[len(path) :].lstrip("/"): self._at[name] for name in sorted(self._below(path)) if name != path}
        return Listing(
            tuple(FileEntry(name, len(data)) for name, data in found.items() if data is not None),
            tuple(name for name, data in found.items() if data is None),
        )

    def exists(self, path: str) -> bool:
        return path in self._at

    def read(self, path: str, most_bytes: int = SIDE_FILE_BYTES) -> bytes:
        return read_whole(self.open_input(path), path, most_bytes)

    def open_input(self, path: str) -> BinaryIO:
        data = self._at.get(path)
        if data is None:
            raise StorageError(path, "does not exist", "look again")
        return io.BytesIO(data)

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        file = io.BytesIO()
        yield file
        self.write_new(path, file.getvalue())

    def write_new(self, path: str, data: bytes) -> None:
        if path in self._at:
            raise NameTakenError(path, "exists already", "look again")
        self._at[path] = data

    def make_directory(self, path: str) -> None:
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            self._at.setdefault("/".join(parts[:end]), None)

    def make_private(self, path: str) -> None:
        self.make_directory(path)

    def check_private(self, path: str) -> None:
        """Nobody else comes here."""

    def publish(self, source: str, target: str) -> None:
        if target in self._at:
            raise NameTakenError(target, "exists already", "look again")
        if source not in self._at:
            raise StorageError(source, "does not exist", "look again")
        for name in self._below(source):
            self._at[target + name[len(source) :]] = self._at.pop(name)

    def move(self, source: str, target: str) -> None:
        self.publish(source, target)

    def flush(self) -> None:
        """There is no disk."""

    def delete(self, paths: Iterable[str]) -> None:
        for name in [name for path in paths for name in self._below(path)]:
            del self._at[name]

    def delete_files(self, paths: Iterable[str]) -> None:
        self.delete(paths)

    def _below(self, path: str) -> tuple[str, ...]:
        return tuple(name for name in self._at if not path or name == path or name.startswith(f"{path}/"))


def test_a_partition_on_a_new_kind_of_store_is_compacted_and_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attic = StoreKind("attic", frozenset({"attic"}), AtticOptions, AtticStorage)
    monkeypatch.setattr(filesystem, "STORES", (*filesystem.STORES, attic))
    storages = Storages.from_json(Storages.from_options({"attic": {"shelf": "lower"}}).to_json())
    storage = storages.open("attic:///t")

    partition = Partition(tmp_path)
    partition.write("delta_0000001_0000001", [insert(1, row, 10 + row) for row in range(3)])
    partition.write("delete_delta_0000002_0000002", [delete(1, 1, by=2)])
    inputs = ("delta_0000001_0000001", "delete_delta_0000002_0000002")
    for name in inputs:
        storage.make_directory(name)
        storage.write_new(f"{name}/bucket_00000", (tmp_path / name / "bucket_00000").read_bytes())

    plan = replace(partition.plan(), location="attic:///t", staging=staging_name("0" * 16), directories=inputs)
    open_staging(storage, plan)
    result = run_plainly(plan, storages)
    assert result.error is None
    publisher = publisher_on(storage)
    publisher.check_staged(plan, result, plan.outputs[0])
    publisher.publish(cast(Any, type("Active", (), {"plan": plan})), result, lambda step, entity: None)
    publisher.give_up(plan)
    with publisher.discard() as discard:
        discard.take(inputs, lambda: None)
        discard.empty()

    assert {name.partition("/")[0] for name in storage.list().directories} == set(plan.targets)
    with storage.open_input(f"{plan.targets[0]}/bucket_00000") as file:
        assert [row[5] for row in pyorc.Reader(file)] == [(10,), (12,)]
