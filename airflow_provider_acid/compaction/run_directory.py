"""The operator's side of a run directory: plans and signs of life in, results and progress out.

It lies on the tables' storage, so that any worker and any deploy mode sees it. Its files are named in
:mod:`~airflow_provider_acid.acid.exchange`.
"""

from __future__ import annotations

import json
import logging

from airflow_provider_acid.acid import exchange
from airflow_provider_acid.acid.json_fields import decoded, integer
from airflow_provider_acid.acid.plan import FORMAT_VERSION, CompactionPlan
from airflow_provider_acid.acid.result import CompactionResult
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.exceptions import AcidError, UnsupportedTableError
from airflow_provider_acid.filesystem import Storages, join
from airflow_provider_acid.storages.small_files import EXCHANGE_FILE_BYTES

log = logging.getLogger(__name__)

RUNS_DIRECTORY = "_acid_runs"
"""Must not begin like a staging directory: a later attempt removes those."""
IDLE_TIMEOUT_SECONDS = 600.0


class RunDirectory:
    """The operator's side of one run.

    :param storages: opens the run's directory.
    :param parent: URI of a directory all Spark executors reach, as a rule the first table's location.
    :param name: unique name of the run.
    :param items: number of partitions in the run.
    :param idle_timeout_seconds: the application ends itself after this long without a sign of life.
    """

    def __init__(
        self, storages: Storages, parent: str, name: str, items: int, idle_timeout_seconds: float = IDLE_TIMEOUT_SECONDS
    ) -> None:
        self.storages = storages
        self.idle_timeout_seconds = idle_timeout_seconds
        self._parent = storages.open(parent)
        self._path = f"{RUNS_DIRECTORY}/{name}"
        self._parent.make_directory(self._path)
        self.location = join(parent, self._path)
        self._storage = storages.open(self.location)
        self._seen: set[str] = set()
        self._beats = 0
        batch = {
            "format_version": FORMAT_VERSION,
            "partitions": items,
            "idle_timeout_seconds": idle_timeout_seconds,
        }
        self._storage.write_new(exchange.BATCH_FILE, json.dumps(batch).encode())

    def put_plan(self, index: int, plan: CompactionPlan) -> None:
        """Hand item ``index`` to the application.

        :raises UnsupportedTableError: the partition has more files than a plan may name.
        """
        document = plan.to_json().encode()
        if len(document) > EXCHANGE_FILE_BYTES:
            raise UnsupportedTableError(
                str(plan.entity),
                f"its plan would have {len(document)} bytes, and {EXCHANGE_FILE_BYTES} are read at most",
                "compact it by Hive, or merge its files in parts, by minors",
            )
        self._storage.write_new(exchange.item_file(index, exchange.PLAN), document)

    def put_skip(self, index: int) -> None:
        """Tell the application that there is nothing to merge for item ``index``."""
        self._storage.write_new(exchange.item_file(index, exchange.SKIP), b"")

    def beat(self) -> None:
        """Leave a sign of life and remove the one before the last."""
        self._beats += 1
        self._storage.write_new(exchange.alive_file(self._beats), b"")
        self._storage.delete([exchange.alive_file(self._beats - 2)])

    def poll(self) -> tuple[dict[int, CompactionResult | AcidError], dict[int, int]]:
        """Results that came since the last call, or why they cannot be read, and the bytes done per item."""
        results: dict[int, CompactionResult | AcidError] = {}
        bytes_done: dict[int, int] = {}
        for file in self._storage.list().files:
            named = exchange.parse_item_file(file.path)
            if named is None or file.path in self._seen:
                continue
            self._seen.add(file.path)
            index, kind = named
            if kind == exchange.RESULT:
                results[index] = self._result(file.path)
            elif kind.startswith("progress."):
                bytes_done[index] = max(self._bytes_done(file.path), bytes_done.get(index, 0))
        return results, bytes_done

    def _result(self, path: str) -> CompactionResult | AcidError:
        try:
            with Supervised(join(self.location, path)):
                return CompactionResult.from_json(self._storage.read(path, EXCHANGE_FILE_BYTES))
        except AcidError as error:
            return error

    def _bytes_done(self, path: str) -> int:
        """What a report says; 0 where it cannot be understood, for nothing depends on it."""
        try:
            return integer(decoded(self._storage.read(path), path), "bytes_done")
        except AcidError as error:
            log.warning("A report of progress is passed over: %s", error)
            return 0

    def remove(self) -> None:
        """Remove the run's files; the directory of all runs goes too when this was the last."""
        self._parent.delete([self._path])
        if not self._parent.exists(RUNS_DIRECTORY):
            # Where there are no directories it went with the last run, and the next one may just begin.
            return
        runs = self._parent.list(RUNS_DIRECTORY)
        if not runs.directories and not runs.files:
            self._parent.delete([RUNS_DIRECTORY])
