"""How a table is read: every way Hive has of doing it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyorc

from tests.harness.hive_engine import HiveEngine

FETCH, JOB = "more", "none"
WAYS = {
    "row mode, fetch task": (False, FETCH),
    "vectorised, fetch task": (True, FETCH),
    "row mode, job": (False, JOB),
    "vectorised, job": (True, JOB),
}
FETCHES = tuple(way for way, (_, conversion) in WAYS.items() if conversion == FETCH)


def read(hive: HiveEngine, table: str, columns: str, way: str = "row mode, fetch task") -> list[str]:
    """All rows as Hive prints them, sorted."""
    vectorised, conversion = WAYS[way]
    return sorted(
        hive.execute(
            f"set hive.vectorized.execution.enabled={str(vectorised).lower()}",
            f"set hive.fetch.task.conversion={conversion}",
            f"select {columns} from {table}",
        )
    )


def check_every_way(hive: HiveEngine, table: str, columns: str, expected: list[str], when: str) -> None:
    """Every way of reading finds the same rows.

    :raises AssertionError: one does not; the message names it and the rows.
    """
    for way in WAYS:
        found = read(hive, table, columns, way)
        missing = list((Counter(expected) - Counter(found)).elements())
        extra = list((Counter(found) - Counter(expected)).elements())
        assert not missing, f"{table}, {when}, {way}: missing {missing}, instead {extra}"
        assert not extra, f"{table}, {when}, {way}: {extra} should not be there"


def check_bases(hive: HiveEngine, table: str, when: str) -> None:
    """The bases hold no row but those that Hive reads.

    Hive hides rows of a transaction as long as it knows that it aborted.
    In a base they would come back once it forgets.

    :raises AssertionError: they do; the message names their ids.
    """
    database, _, name = table.partition(".")
    bases = Path(hive.metastore.warehouse, f"{database}.db", name).rglob("base_*/bucket_*")
    held = Counter(row_id for path in bases for row_id in _row_ids(path))
    printed = read(hive, table, "row__id.writeid, row__id.bucketid, row__id.rowid")
    extra = held - Counter(printed)
    assert not extra, f"{table}, {when}: the bases hold {sorted(extra)}, which Hive does not read"


_KEY = ("originalTransaction", "bucket", "rowId")


def _row_ids(path: Path) -> list[str]:
    with path.open("rb") as file:
        return ["\t".join(map(str, row)) for row in pyorc.Reader(file, column_names=_KEY)]
