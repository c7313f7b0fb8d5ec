"""The directory on the tables' storage through which operator and Spark application talk.

Any worker and any deploy mode sees it. Files are only ever added, never changed:

- ``batch.json``: number of items and how long the application waits without a sign of life;
- ``NNNN.plan.json`` or ``NNNN.skip``: the operator's word on item NNNN;
- ``NNNN.result.json``: the application's word on it; ``NNNN.progress.K``: bytes done so far;
- ``operator.alive.K``: the operator's sign of life.
"""

from __future__ import annotations

import json
import logging
import re

from airflow_provider_acid.acid.json_fields import as_object, integer
from airflow_provider_acid.acid.plan import FORMAT_VERSION, CompactionPlan, CompactionResult
from airflow_provider_acid.filesystem import join, storage_for

log = logging.getLogger(__name__)

RUNS_DIRECTORY = "_acid_runs"
"""Must not begin like a staging directory: a later attempt removes those."""
BATCH_FILE = "batch.json"
ALIVE_PREFIX = "operator.alive."
IDLE_TIMEOUT_SECONDS = 600.0

_APPLICATION_FILE = re.compile(r"(?P<item>\d{4,})\.(?P<kind>result\.json|progress\.\d+)")


class RunDirectory:
    """The operator's side of one run.

    :param parent: URI of a directory all Spark executors reach, as a rule the first table's location.
    :param name: unique name of the run.
    :param items: number of partitions in the run.
    :param idle_timeout_seconds: the application ends itself after this long without a sign of life.
    """

    def __init__(self, parent: str, name: str, items: int, idle_timeout_seconds: float = IDLE_TIMEOUT_SECONDS) -> None:
        self._parent = storage_for(parent)
        self._path = f"{RUNS_DIRECTORY}/{name}"
        self._parent.make_directory(self._path)
        self.location = join(parent, self._path)
        self._storage = storage_for(self.location)
        self._seen: set[str] = set()
        self._beats = 0
        batch = {
            "format_version": FORMAT_VERSION,
            "partitions": items,
            "idle_timeout_seconds": idle_timeout_seconds,
        }
        self._storage.write_new(BATCH_FILE, json.dumps(batch).encode())

    def put_plan(self, index: int, plan: CompactionPlan) -> None:
        """Hand item ``index`` to the application."""
        self._storage.write_new(f"{index:04d}.plan.json", plan.to_json().encode())

    def put_skip(self, index: int) -> None:
        """Tell the application that there is nothing to merge for item ``index``."""
        self._storage.write_new(f"{index:04d}.skip", b"")

    def beat(self) -> None:
        """Leave a sign of life and remove the one before the last."""
        self._beats += 1
        self._storage.write_new(f"{ALIVE_PREFIX}{self._beats}", b"")
        self._storage.delete([f"{ALIVE_PREFIX}{self._beats - 2}"])

    def poll(self) -> tuple[dict[int, CompactionResult], dict[int, int]]:
        """Results that came since the last call, and the bytes done per item.

        :raises ConfigurationError: a result was written by another version of this package.
        """
        results: dict[int, CompactionResult] = {}
        bytes_done: dict[int, int] = {}
        for file in self._storage.list().files:
            # Whole names only: a file that is just being written has a longer one.
            name = _APPLICATION_FILE.fullmatch(file.path)
            if name is None or file.path in self._seen:
                continue
            self._seen.add(file.path)
            index, content = int(name["item"]), self._storage.read(file.path)
            if name["kind"] == "result.json":
                results[index] = CompactionResult.from_json(content.decode())
            else:
                report = as_object(json.loads(content), file.path)
                bytes_done[index] = max(integer(report, "bytes_done"), bytes_done.get(index, 0))
        return results, bytes_done

    def remove(self) -> None:
        """Remove the run's files; the directory of all runs goes too when this was the last."""
        self._parent.delete([self._path])
        runs = self._parent.list(RUNS_DIRECTORY)
        if not runs.directories and not runs.files:
            self._parent.delete([RUNS_DIRECTORY])
