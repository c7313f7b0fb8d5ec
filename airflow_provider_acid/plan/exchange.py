"""Names of the files by which operator and Spark application talk; both sides know them from here.

A *staging directory* lies inside the partition: the plan, the tasks' attempts, the finished output and, last, the
result that completes it. A *run directory* lies where operator and driver reach it, and executors where they are to
tell how far they are. In both, files are written once and never changed. These carry the seal of the run
(:mod:`~airflow_provider_acid.acid.sealing`):

- ``batch.json``: how long the application waits without a sign of life;
- ``NNNN.plan.json``: the operator's word on item NNNN;
- ``NNNN.result.json``: the application's word on it;
- ``end.json``: the operator's word that it waits for nothing more.

The operator removes an item's files when the item is over, so that a look does not grow with the run.

The others carry none, since nothing that is published depends on them: a false one keeps an application waiting, or
shows a wrong figure.

- ``operator.alive.K``: the operator's sign of life;
- ``application.json``: the application's id and the address of its user interface;
- ``NNNN.progress.K``: how far the application is with an item;
- ``NNNN.bucket.B.P``: a task's word that P per cent of bucket B are read;
- ``NNNN.slice.B.S.M``: a task's word that slice S of bucket B is written, which was made of M mebibytes.
"""

from __future__ import annotations

import re

PLAN_FILE = "plan.json"
"""In a staging directory: its plan."""

RESULT_FILE = "result.json"
"""In a staging directory: the output beside it is complete."""

ATTEMPTS_DIRECTORY = "attempts"
"""In a staging directory: files of task attempts, of which the driver takes one per bucket."""

OUTPUTS_DIRECTORY = "output"
"""In a staging directory: the directories of the result, by kind."""

JOURNAL_FILE = "journal.json"
"""In a staging directory: publishing two directories has begun, and ends with both or none."""

REPLACED_FILE = "replaced.json"
"""In a staging directory: what the compaction replaced; where the rename publishes it stays until the cleaning."""

UNDO_FILE = "undo.json"
"""In a staging directory: what the compaction replaced, file by file; it stays until the cleaning, or an undo."""

BATCH_FILE, END_FILE = "batch.json", "end.json"

LEAST_PAUSE_SECONDS = 0.05


def pause_seconds(last_seconds: float, most_seconds: float, look_seconds: float, *, news: bool) -> float:
    """How long either side waits for its next look into the run directory.

    Short after something happened, twice as long each time that nothing does; and never shorter than a look takes,
    which grows with the run, so that looking is at most half of what a side does.

    :param last_seconds: how long it waited last.
    :param most_seconds: the longest pause.
    :param look_seconds: what the last look took.
    :param news: whether that one found something.
    """
    return min(max(LEAST_PAUSE_SECONDS if news else 2 * last_seconds, LEAST_PAUSE_SECONDS, look_seconds), most_seconds)


APPLICATION_FILE = "application.json"
"""In a run directory: what the application says of itself; nothing depends on it."""

PLAN, RESULT = "plan.json", "result.json"
"""Kinds of an item's files in a run directory."""

_ITEM = re.compile(r"(\d{4,18})\.(plan\.json|result\.json|progress\.\d+|bucket\.\d+\.\d+|slice(?:\.\d+){3})")
_BUCKET = re.compile(r"bucket\.(\d{1,18})\.(\d{1,18})")
_SLICE = re.compile(r"slice\.(\d{1,18})\.(\d{1,18})\.(\d{1,18})")
_ALIVE = re.compile(r"operator\.alive\.(\d{1,18})")


def item_file(item: int, kind: str) -> str:
    """Name of an item's file, e.g. ``0007.plan.json``."""
    return f"{item:04d}.{kind}"


def progress_kind(number: int) -> str:
    """Kind of the driver's report ``number`` on how far an item is."""
    return f"progress.{number}"


def bucket_kind(bucket: int, percent: int) -> str:
    """Kind of a task's report on one bucket."""
    return f"bucket.{bucket}.{percent}"


def parse_bucket_kind(kind: str) -> tuple[int, int] | None:
    """Bucket and per cent of a task's report; None for any other kind."""
    match = _BUCKET.fullmatch(kind)
    return (int(match[1]), int(match[2])) if match else None


def slice_kind(bucket: int, number: int, mebibytes: int) -> str:
    """Kind of a task's report on a slice that is written."""
    return f"slice.{bucket}.{number}.{mebibytes}"


def parse_slice_kind(kind: str) -> tuple[int, int, int] | None:
    """Bucket, number and mebibytes of a slice that is written; None for any other kind."""
    match = _SLICE.fullmatch(kind)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def alive_file(counter: int) -> str:
    """Name of the operator's sign of life ``counter``."""
    return f"operator.alive.{counter}"


def parse_item_file(name: str) -> tuple[int, str] | None:
    """Item and kind of a whole file; None for any other name, also that of one that is just being written."""
    match = _ITEM.fullmatch(name)
    return (int(match[1]), match[2]) if match else None


def parse_alive_file(name: str) -> int | None:
    """The counter of a sign of life; None for any other name."""
    match = _ALIVE.fullmatch(name)
    return int(match[1]) if match else None
