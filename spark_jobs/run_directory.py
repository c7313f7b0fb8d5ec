"""The run directory: how the operator and the Spark driver talk, by files that are written once and never changed.

The operator writes ``batch.json``, then per item ``NNNN.plan.json`` or ``NNNN.skip``, and ``operator.alive.<counter>``
as its sign of life. The driver writes ``NNNN.result.json`` and ``NNNN.progress.<k>``; its tasks write
``NNNN.bucket.<bucket>.<percent>``. The directory lies on the tables' storage, so any deploy mode sees it.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.plan import FORMAT_VERSION, CompactionPlan, CompactionResult
from airflow_provider_acid.exceptions import ConfigurationError, NameTakenError
from airflow_provider_acid.filesystem import Storage

BATCH = "batch.json"

_NAME = re.compile(r"(\d{4,})\.(plan\.json|skip|result\.json|progress\.\d+|bucket\.(\d+)\.(\d+))")
_ALIVE = re.compile(r"operator\.alive\.(\d+)")


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
    """

    plans: frozenset[int]
    skips: frozenset[int]
    results: frozenset[int]
    alive: int
    percent: dict[tuple[int, int], int]


class RunDirectory:
    """Reads and writes the files of a run."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def batch(self) -> Batch:
        """Read ``batch.json``.

        :raises ConfigurationError: it is not of this version.
        """
        document = self._storage.read(BATCH)
        try:
            data = fields.as_object(json.loads(document), BATCH)
        except ValueError as error:
            raise ConfigurationError(BATCH, f"is not JSON ({error})", "start the operator again") from error
        if data.get("format_version") != FORMAT_VERSION:
            raise ConfigurationError(
                f"{self._storage.location}/{BATCH}",
                f"has format version {data.get('format_version')!r}, this package reads {FORMAT_VERSION}",
                "run operator and Spark job from the same release of airflow-provider-acid",
            )
        return Batch(fields.integer(data, "partitions"), fields.number(data, "idle_timeout_seconds"))

    def look(self) -> Seen:
        """List the directory once."""
        found: dict[str, set[int]] = {"plan.json": set(), "skip": set(), "result.json": set()}
        percent: dict[tuple[int, int], int] = {}
        alive = -1
        for file in self._storage.list().files:
            if match := _NAME.fullmatch(file.path):
                item, kind = int(match[1]), match[2]
                if kind in found:
                    found[kind].add(item)
                elif match[3]:
                    place = item, int(match[3])
                    percent[place] = max(percent.get(place, 0), int(match[4]))
            elif match := _ALIVE.fullmatch(file.path):
                alive = max(alive, int(match[1]))
        return Seen(
            frozenset(found["plan.json"]), frozenset(found["skip"]), frozenset(found["result.json"]), alive, percent
        )

    def plan(self, item: int) -> CompactionPlan:
        """Read an item's plan.

        :raises ConfigurationError: it is not a plan of this version.
        """
        return CompactionPlan.from_json(self._storage.read(f"{item:04d}.plan.json").decode())

    def write_result(self, item: int, result: CompactionResult) -> None:
        """Report an item as finished; the first report stands."""
        self._write_once(f"{item:04d}.result.json", result.to_json())

    def write_progress(self, item: int, number: int, document: dict[str, object]) -> None:
        """Report how far an item is."""
        self._write_once(f"{item:04d}.progress.{number}", json.dumps(document, sort_keys=True))

    def write_bucket_progress(self, item: int, bucket: int, percent: int) -> None:
        """Report from a task how far it is; another attempt at the same task may have said so before."""
        self._write_once(f"{item:04d}.bucket.{bucket}.{percent}", "")

    def _write_once(self, name: str, text: str) -> None:
        with suppress(NameTakenError):
            self._storage.write_new(name, text.encode())
