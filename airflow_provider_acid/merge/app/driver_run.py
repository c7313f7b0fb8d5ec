"""The application's side of a run directory: the driver reads plans and writes results, its tasks write progress.

See :mod:`~airflow_provider_acid.plan.exchange` for the files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.sealing import RunKey
from airflow_provider_acid.exceptions import AcidError, NameTakenError, StorageError, UnauthenticatedError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.plan import exchange
from airflow_provider_acid.plan.plan import FORMAT_VERSION, BucketPlan, CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.storages.small_files import EXCHANGE_FILE_BYTES, SIDE_FILE_BYTES


class RunGoneError(AcidError):
    """The operator has removed the run directory, or somebody on its behalf: it ended, or was killed."""


@dataclass(frozen=True)
class Batch:
    """What ``batch.json`` says.

    :param idle_timeout_seconds: how long the driver goes on without a new sign of life.
    """

    idle_timeout_seconds: float


@dataclass(frozen=True)
class Seen:
    """What one listing of the run directory shows.

    :param ended: whether the operator waits for nothing more.
    :param alive: the operator's newest counter; -1 before the first.
    :param percent: per item and bucket, how much a task says it has read.
    :param sliced_mebibytes: per item and bucket, how much was read of slices that are written.
    """

    plans: frozenset[int]
    results: frozenset[int]
    ended: bool
    alive: int
    percent: Mapping[tuple[int, int], int]
    sliced_mebibytes: Mapping[tuple[int, int], int]

    def read_bytes(self, item: int, bucket: BucketPlan) -> int:
        """How much of a bucket's files is known to be read."""
        percent = self.percent.get((item, bucket.bucket), 0)
        sliced_bytes = self.sliced_mebibytes.get((item, bucket.bucket), 0) << 20
        return max(bucket.input_bytes * percent // 100, min(sliced_bytes, bucket.input_bytes))


class TaskReports:
    """What tasks write into a run directory, without its key."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def write_bucket_progress(self, item: int, bucket: int, percent: int) -> None:
        """Report from a task how far it is; another attempt at the same task may have said so before."""
        self._write_once(exchange.item_file(item, exchange.bucket_kind(bucket, percent)), b"")

    def write_slice(self, item: int, bucket: int, number: int, mebibytes: int) -> None:
        """Report from a task that a slice is written; another attempt at the same task may have said so before."""
        self._write_once(exchange.item_file(item, exchange.slice_kind(bucket, number, mebibytes)), b"")

    def _write_once(self, name: str, content: bytes) -> None:
        with suppress(NameTakenError):
            self._storage.write_new(name, content)


class DriverRun(TaskReports):
    """Reads and writes the files of a run, for the driver.

    :param secret: of the run's key.
    """

    def __init__(self, storage: Storage, secret: bytes) -> None:
        super().__init__(storage)
        self._key = RunKey(storage.location.rstrip("/").rpartition("/")[2], secret)

    def batch(self) -> Batch:
        """Read ``batch.json``.

        :raises RunGoneError: the directory was removed.
        :raises RefusedError: the directory is somebody else's, or others may write to it.
        :raises UnauthenticatedError: the operator did not write it as it is.
        :raises ConfigurationError: it is not of this version.
        """
        self._check_there()
        self._storage.check_private("")
        document = self._opened(exchange.BATCH_FILE)
        return fields.read_as(Batch, fields.versioned(document, self._uri(exchange.BATCH_FILE), FORMAT_VERSION))

    def write_application(self, id: str, ui_url: str | None) -> None:
        """Tell where the application can be watched.

        :param ui_url: None where it has no user interface.
        """
        self._write_once(exchange.APPLICATION_FILE, json.dumps({"id": id, "ui_url": ui_url}).encode())

    def look(self) -> Seen:
        """List the directory once.

        :raises RunGoneError: it was removed.
        :raises StorageError: it cannot be listed, and may be there.
        """
        found: dict[str, set[int]] = {exchange.PLAN: set(), exchange.RESULT: set()}
        percent: dict[tuple[int, int], int] = {}
        slices: dict[tuple[int, int], dict[int, int]] = {}
        alive = -1
        files = self._files()
        for file in files:
            alive = max(alive, exchange.parse_alive_file(file) or -1)
            item, kind = exchange.parse_item_file(file) or (-1, "")
            if kind in found:
                found[kind].add(item)
            elif (read := exchange.parse_bucket_kind(kind)) is not None:
                bucket, done = read
                percent[item, bucket] = max(percent.get((item, bucket), 0), done)
            elif (written := exchange.parse_slice_kind(kind)) is not None:
                bucket, number, mebibytes = written
                slices.setdefault((item, bucket), {})[number] = mebibytes
        sliced = {place: sum(of_bucket.values()) for place, of_bucket in slices.items()}
        plans, results = (frozenset(items) for items in found.values())
        return Seen(plans, results, exchange.END_FILE in files and self._is_end(), alive, percent, sliced)

    def _is_end(self) -> bool:
        try:
            self._opened(exchange.END_FILE)
        except UnauthenticatedError:
            # A false one is passed over, and so the operator is waited for.
            return False
        return True

    def _files(self) -> frozenset[str]:
        try:
            files = frozenset(file.path for file in self._storage.list().files)
        except StorageError:
            self._check_there()
            raise
        # Where there are no directories one that was removed is an empty one, or holds what a task wrote afterwards.
        if exchange.BATCH_FILE not in files:
            self._check_there()
        return files

    def _check_there(self) -> None:
        if not self._storage.exists(exchange.BATCH_FILE):
            raise RunGoneError(self._storage.location, "was removed, nobody waits for results", "start the task again")

    def plan(self, item: int) -> CompactionPlan:
        """Read an item's plan.

        :raises UnauthenticatedError: the operator did not write it as it is.
        :raises ConfigurationError: it is not a plan of this version.
        """
        return CompactionPlan.from_json(self._opened(exchange.item_file(item, exchange.PLAN), EXCHANGE_FILE_BYTES))

    def write_result(self, item: int, result: CompactionResult) -> None:
        """Report an item as finished; the first report stands."""
        name = exchange.item_file(item, exchange.RESULT)
        self._write_once(name, self._key.sealed(name, result.to_json().encode()))

    def write_progress(self, item: int, number: int, document: dict[str, object]) -> None:
        """Report how far an item is."""
        text = json.dumps(document, sort_keys=True)
        self._write_once(exchange.item_file(item, exchange.progress_kind(number)), text.encode())

    def _opened(self, name: str, most_bytes: int = SIDE_FILE_BYTES) -> bytes:
        return self._key.opened(self._uri(name), name, self._storage.read(name, most_bytes))

    def _uri(self, name: str) -> str:
        return join(self._storage.location, name)
