"""Compares what a snapshot reads with the ledger."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tests.harness.acid_reader import RowId, Snapshot, live_directories
from tests.harness.concurrency.ledger import HIVE_KEYS, Ledger, Rows
from tests.harness.concurrency.places import Place
from tests.harness.concurrency.stage import RunFailedError

SETTLING_SECONDS = 3.0
_SHOWN = 10


@dataclass(frozen=True)
class View:
    """A snapshot and the time between which it was asked for and taken, by the machine's monotonic clock."""

    snapshot: Snapshot
    asked_monotonic: float
    taken_monotonic: float


def check_rows(ledger: Ledger, place: Place, view: View, found: Mapping[RowId, tuple[int, int]]) -> Rows:
    """The rows, by key, without those of a real Hive.

    :raises RunFailedError: they are not those of the ledger.
    """
    snapshot = view.snapshot
    all_rows = dict(found.values())
    _check_hives(ledger, place, view, {key: value for key, value in all_rows.items() if key >= HIVE_KEYS})
    rows = {key: value for key, value in all_rows.items() if key < HIVE_KEYS}
    if len(all_rows) != len(found):
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


def _check_hives(ledger: Ledger, place: Place, view: View, rows: Rows) -> None:
    session = place.table.hive_session
    for _ in range(2):
        allowed = ledger.hive_rows(session, place.partition, view.asked_monotonic, view.taken_monotonic)
        if rows in allowed:
            return
        time.sleep(SETTLING_SECONDS)
    keys = {key for state in allowed for key in {*rows, *state} if rows.get(key) != state.get(key)}
    text = f"{len(rows)} rows of Hive, expected {[len(state) for state in allowed]}: {sorted(keys)[:_SHOWN]} differ"
    raise RunFailedError("\n".join([_report(ledger, place, view.snapshot, text, ()), *ledger.history(session, keys)]))


def check_snapshot(ledger: Ledger, place: Place, view: View) -> None:
    """Checks that what was committed before is seen.

    :raises RunFailedError: it is not.
    """
    unseen = ledger.unseen(place.table.name, view.snapshot, view.asked_monotonic)
    if unseen:
        raise RunFailedError(_report(ledger, place, view.snapshot, f"committed write ids {unseen} are not seen", ()))


def _report(ledger: Ledger, place: Place, snapshot: Snapshot, what: str, keys: Collection[int]) -> str:
    parts = [
        f"{place}: {what}",
        f"snapshot: {snapshot}",
        "what happened to these keys:",
        *ledger.history(place.table.name, sorted(keys)[:_SHOWN]),
        "live directories now: " + ", ".join(path.name for path in live_directories(place.folder, snapshot)),
    ]
    return "\n".join(parts)
