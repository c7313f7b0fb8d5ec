"""The application's side of a run directory: the driver reads plans and writes results, its tasks write progress.

See :mod:`~airflow_provider_acid.acid.exchange` for the files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from airflow_provider_acid.acid import exchange
from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.plan import FORMAT_VERSION, BucketPlan, CompactionPlan
from airflow_provider_acid.acid.result import CompactionResult
from airflow_provider_acid.exceptions import AcidError, NameTakenError, StorageError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.storages.small_files import EXCHANGE_FILE_BYTES


class RunGoneError(AcidError):
    """The operator has removed the run directory, or somebody on its behalf: it ended, or was killed."""


@dataclass(frozen=True)
class Batch:
    """What ``batch.json`` says.

    :param partitions: number of items; each gets a plan or a skip, in any order, at any time.
    :param idle_timeout_seconds: how long the driver goes on without a new sign of life.
    """

    partitions: int
    idle_timeout_seconds: float


@dataclass(frozen=True)
class Seen:
    """What one listing of the run directory shows.

    :param alive: the operator's newest counter; -1 before the first.
    :param percent: per item and bucket, how much a task says it has read.
    :param sliced_mebibytes: per item and bucket, how much was read of slices that are written.
    """

    plans: frozenset[int]
    skips: frozenset[int]
    results: frozenset[int]
    alive: int
    percent: Mapping[tuple[int, int], int]
    sliced_mebibytes: Mapping[tuple[int, int], int]

    def read_bytes(self, item: int, bucket: BucketPlan) -> int:
        """How much of a bucket's files is known to be read."""
        percent = self.percent.get((item, bucket.bucket), 0)
        sliced_bytes = self.sliced_mebibytes.get((item, bucket.bucket), 0) << 20
        return max(bucket.input_bytes * percent // 100, min(sliced_bytes, bucket.input_bytes))


class RunDirectory:
    """Reads and writes the files of a run."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def batch(self) -> Batch:
        """Read ``batch.json``.

        :raises RunGoneError: the directory was removed.
        :raises ConfigurationError: it is not of this version.
        """
        self._check_there()
        name = f"{self._storage.location}/{exchange.BATCH_FILE}"
        data = fields.versioned(self._storage.read(exchange.BATCH_FILE), name, FORMAT_VERSION)
        return Batch(fields.integer(data, "partitions"), fields.number(data, "idle_timeout_seconds"))

    def write_application(self, id: str, ui_url: str | None) -> None:
        """Tell where the application can be watched.

        :param ui_url: None where it has no user interface.
        """
        self._write_once(exchange.APPLICATION_FILE, json.dumps({"id": id, "ui_url": ui_url}))

    def look(self) -> Seen:
        """List the directory once.

        :raises RunGoneError: it was removed.
        :raises StorageError: it cannot be listed, and may be there.
        """
        found: dict[str, set[int]] = {exchange.PLAN: set(), exchange.SKIP: set(), exchange.RESULT: set()}
        percent: dict[tuple[int, int], int] = {}
        slices: dict[tuple[int, int], dict[int, int]] = {}
        alive = -1
        for file in self._files():
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
        plans, skips, results = (frozenset(items) for items in found.values())
        return Seen(plans, skips, results, alive, percent, sliced)

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

        :raises ConfigurationError: it is not a plan of this version.
        """
        return CompactionPlan.from_json(
            self._storage.read(exchange.item_file(item, exchange.PLAN), EXCHANGE_FILE_BYTES)
        )

    def write_result(self, item: int, result: CompactionResult) -> None:
        """Report an item as finished; the first report stands."""
        self._write_once(exchange.item_file(item, exchange.RESULT), result.to_json())

    def write_progress(self, item: int, number: int, document: dict[str, object]) -> None:
        """Report how far an item is."""
        self._write_once(exchange.item_file(item, exchange.progress_kind(number)), json.dumps(document, sort_keys=True))

    def write_bucket_progress(self, item: int, bucket: int, percent: int) -> None:
        """Report from a task how far it is; another attempt at the same task may have said so before."""
        self._write_once(exchange.item_file(item, exchange.bucket_kind(bucket, percent)), "")

    def write_slice(self, item: int, bucket: int, number: int, mebibytes: int) -> None:
        """Report from a task that a slice is written; another attempt at the same task may have said so before."""
        self._write_once(exchange.item_file(item, exchange.slice_kind(bucket, number, mebibytes)), "")

    def _write_once(self, name: str, text: str) -> None:
        with suppress(NameTakenError):
            self._storage.write_new(name, text.encode())
