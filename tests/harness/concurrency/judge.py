"""Compares what a snapshot reads with the ledger."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from tests.harness.acid_reader import RowId, Snapshot, live_directories
from tests.harness.concurrency.ledger import Ledger, Rows
from tests.harness.concurrency.places import Place
from tests.harness.concurrency.stage import RunFailedError

SETTLING_SECONDS = 3.0
_SHOWN = 10


def check_rows(ledger: Ledger, place: Place, snapshot: Snapshot, found: Mapping[RowId, tuple[int, int]]) -> Rows:
    """The rows, by key.

    :raises RunFailedError: they are not those of the ledger.
    """
    rows = dict(found.values())
    if len(rows) != len(found):
        keys = [key for key, _ in found.values()]
        doubled = {key for key in keys if keys.count(key) > 1}
        raise RunFailedError(_report(ledger, place, snapshot, f"keys {sorted(doubled)} occur twice", doubled))
    expected = ledger.rows(place.table.name, place.partition, snapshot)
    if rows != expected:
        # That a transaction was aborted is written down a moment after the metastore has aborted it.
        time.sleep(SETTLING_SECONDS)
        expected = ledger.rows(place.table.name, place.partition, snapshot)
    if rows != expected:
        differing = {key for key in {*rows, *expected} if rows.get(key) != expected.get(key)}
        missing = sorted(set(expected) - set(rows))[:_SHOWN]
        extra = sorted(set(rows) - set(expected))[:_SHOWN]
        text = f"{len(rows)} rows, expected {len(expected)}: missing keys {missing}, unexpected keys {extra}"
        raise RunFailedError(_report(ledger, place, snapshot, text, differing))
    return rows


def check_snapshot(ledger: Ledger, place: Place, snapshot: Snapshot, asked_monotonic: float) -> None:
    """Checks that what was committed before is seen.

    :raises RunFailedError: it is not.
    """
    unseen = ledger.unseen(place.table.name, snapshot, asked_monotonic)
    if unseen:
        raise RunFailedError(_report(ledger, place, snapshot, f"committed write ids {unseen} are not seen", ()))


def _report(ledger: Ledger, place: Place, snapshot: Snapshot, what: str, keys: Collection[int]) -> str:
    parts = [
        f"{place}: {what}",
        f"snapshot: {snapshot}",
        "what happened to these keys:",
        *ledger.history(place.table.name, sorted(keys)[:_SHOWN]),
        "live directories now: " + ", ".join(path.name for path in live_directories(place.folder, snapshot)),
        "the latest events:",
        *ledger.latest(),
    ]
    return "\n".join(parts)
