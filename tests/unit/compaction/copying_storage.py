"""A local folder that behaves as an object store: no directories to make, no renames, copies instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.exceptions import NameTakenError, StorageError
from airflow_provider_acid.filesystem import Storage, Storages
from airflow_provider_acid.storages.local import LocalStorage
from airflow_provider_acid.storages.rules import StoreRules
from airflow_provider_acid.storages.s3.signed import LATE_SECONDS


class CopyingStorage(LocalStorage):
    """See :class:`~airflow_provider_acid.filesystem.ObjectStorage`; one thread, no failures.

    :ivar deleted: what was deleted, in this order.
    :ivar ended: paths whose uploads were ended, in this order.
    """

    rules = StoreRules(renames=False, late_request_seconds=LATE_SECONDS, tasks_may_not_delete=True)

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.deleted: list[str] = []
        self.ended: list[str] = []

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        parent = path.rpartition("/")[0]
        if parent:
            super().make_directory(parent)
        with super().create(path) as file:
            yield file

    def list(self, path: str = "", into: Callable[[str], bool] | None = None) -> Listing:
        """Directories are there as long as there is something in them."""
        found = super().list(path, into)
        held = {parent for file in found.files for parent in map(str, PurePosixPath(file.path).parents)}
        return Listing(found.files, tuple(name for name in found.directories if name in held))

    def exists(self, path: str) -> bool:
        place = Path(self.location, path)
        return place.is_file() or any(below.is_file() for below in place.rglob("*"))

    def make_directory(self, path: str) -> None:
        """Nothing, as on an object store."""

    def move(self, source: str, target: str) -> None:
        raise AssertionError(f"{source} is renamed where there are no renames")

    def delete(self, paths: Iterable[str]) -> None:
        names = list(paths)
        self.deleted += [name for name in names if self.exists(name)]
        super().delete(names)

    def publish_files(self, files: Mapping[str, str], check: Callable[[], None]) -> None:
        for target in {target.rpartition("/")[0] for target in files.values()}:
            if self.exists(target):
                raise NameTakenError(target, "exists already", "-")
        for source in files:
            if not self.exists(source):
                raise StorageError(source, "does not exist", "-")
        for source, target in files.items():
            check()
            self.write_new(target, self.read(source))

    def delete_while_exists(self, anchor: str, paths: Iterable[str]) -> bool:
        if not self.exists(anchor):
            return False
        self.delete(paths)
        return True

    def end_uploads(self, paths: Iterable[str]) -> None:
        self.ended += paths


@dataclass(frozen=True)
class CopyingStorages(Storages):
    """Opens nothing else."""

    def open(self, location: str) -> Storage:
        return CopyingStorage(location)
