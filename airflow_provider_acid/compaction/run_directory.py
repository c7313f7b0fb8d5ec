"""The operator's side of a run directory: plans and signs of life in, results and progress out.

It lies on the tables' storage, so that any worker and any deploy mode sees it. Its files are named in
:mod:`~airflow_provider_acid.acid.exchange`.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from airflow_provider_acid.acid import exchange
from airflow_provider_acid.acid.json_fields import as_object, integer
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.plan import FORMAT_VERSION, CompactionPlan
from airflow_provider_acid.acid.result import CompactionResult
from airflow_provider_acid.filesystem import Storage, Storages, join

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
        """Hand item ``index`` to the application."""
        self._storage.write_new(exchange.item_file(index, exchange.PLAN), plan.to_json().encode())

    def put_skip(self, index: int) -> None:
        """Tell the application that there is nothing to merge for item ``index``."""
        self._storage.write_new(exchange.item_file(index, exchange.SKIP), b"")

    def beat(self) -> None:
        """Leave a sign of life and remove the one before the last."""
        self._beats += 1
        self._storage.write_new(exchange.alive_file(self._beats), b"")
        self._storage.delete([exchange.alive_file(self._beats - 2)])

    def poll(self) -> tuple[dict[int, CompactionResult], dict[int, int]]:
        """Results that came since the last call, and the bytes done per item.

        :raises ConfigurationError: a result was written by another version of this package.
        """
        results: dict[int, CompactionResult] = {}
        bytes_done: dict[int, int] = {}
        for file in self._storage.list().files:
            named = exchange.parse_item_file(file.path)
            if named is None or file.path in self._seen:
                continue
            self._seen.add(file.path)
            index, kind = named
            if kind == exchange.RESULT:
                results[index] = CompactionResult.from_json(self._storage.read(file.path).decode())
            elif kind.startswith("progress."):
                report = as_object(json.loads(self._storage.read(file.path)), file.path)
                bytes_done[index] = max(integer(report, "bytes_done"), bytes_done.get(index, 0))
        return results, bytes_done

    def remove(self) -> None:
        """Remove the run's files; the directory of all runs goes too when this was the last."""
        self._parent.delete([self._path])
        if not self._parent.exists(RUNS_DIRECTORY):
            # Where there are no directories it went with the last run, and the next one may just begin.
            return
        runs = self._parent.list(RUNS_DIRECTORY)
        if not runs.directories and not runs.files:
            self._parent.delete([RUNS_DIRECTORY])


def remove_dead_runs(storages: Storages, parent: str, look: Callable[[], Callable[[str], bool]]) -> None:
    """Remove run directories whose operator died in the middle of its work.

    :param parent: the directory they were made in.
    :param look: tells whether the attempt of a token has a living transaction; called after the listing, since
        whoever handed out a plan had opened its transaction before.
    """
    storage = storages.open(parent)
    if not storage.exists(RUNS_DIRECTORY):
        return
    listing = storage.list(RUNS_DIRECTORY)
    is_alive = look()
    for run in (name for name in listing.directories if "/" not in name):
        place = f"{RUNS_DIRECTORY}/{run}"
        plans, skips, results = _items(listing.below(run))
        # With all plans done and more to come, the operator may be about to begin the next partition.
        at_work = bool(plans - results) or len(plans | skips) == _partitions(storage, place)
        if plans and at_work and not any(is_alive(_attempt(storage, place, item)) for item in plans):
            storage.delete([place])


def _items(listing: Listing) -> tuple[set[int], set[int], set[int]]:
    named = [item for file in listing.files if (item := exchange.parse_item_file(file.path)) is not None]
    plans, skips, results = (
        {item for item, found in named if found == kind} for kind in (exchange.PLAN, exchange.SKIP, exchange.RESULT)
    )
    return plans, skips, results


def _partitions(storage: Storage, run: str) -> int:
    return integer(as_object(json.loads(storage.read(f"{run}/{exchange.BATCH_FILE}")), run), "partitions")


def _attempt(storage: Storage, run: str, item: int) -> str:
    return CompactionPlan.from_json(storage.read(f"{run}/{exchange.item_file(item, exchange.PLAN)}").decode()).attempt
