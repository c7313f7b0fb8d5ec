"""Readers: take lock and snapshot, hold both, and read the same rows and files until they end.

Their rows are those of the ledger for their snapshot, at the first reading as at the last.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.harness.acid_reader import NotEnoughHistoryError, Snapshot, live_files
from tests.harness.concurrency.judge import View, check_rows, check_snapshot
from tests.harness.concurrency.places import Place
from tests.harness.concurrency.session import Access, LockPatienceError, Session
from tests.harness.concurrency.stage import Actor, RunFailedError, Stage

BEAT_SECONDS = 1.5


@dataclass(frozen=True)
class Habit:
    """How a reader reads.

    :param trino: lock first, snapshot after, and without a look at compactions' transactions.
    :param everywhere: it reads all partitions, and not a single one, by the same transaction.
    :param held_seconds: shortest and longest time between its first and last reading.
    :param rest_seconds: the same between two snapshots.
    """

    name: str
    held_seconds: tuple[float, float]
    rest_seconds: tuple[float, float]
    trino: bool = False
    everywhere: bool = False


class Reader(Actor):
    """One session that holds one snapshot after the other.

    :param number: unique among the run's readers.
    """

    def __init__(self, stage: Stage, number: int, habit: Habit) -> None:
        super().__init__(stage, f"{habit.name}-reader-{number}")
        self._habit = habit
        self._session: Session

    def act(self) -> None:
        with self.stage.session() as self._session:
            while not self.stage.is_over:
                everywhere = self._habit.everywhere
                self._hold(self.stage.places if everywhere else (self.random.choice(self.stage.places),))
                self.pause(self.random.uniform(*self._habit.rest_seconds))

    def _hold(self, places: tuple[Place, ...]) -> None:
        (txn,) = self._session.open_transactions()
        try:
            views = self._begin(txn, places)
        except LockPatienceError:
            self._session.abort(txn)
            self.figures["readers given up without a lock"] += 1
            return
        begun = time.monotonic()
        self._read(txn, views)
        self._session.commit(txn)
        held = time.monotonic() - begun
        self.figures[f"snapshots of {self._habit.name} readers"] += 1
        self.figures["longest reader, seconds"] = max(self.figures["longest reader, seconds"], round(held))

    def _read(self, txn: int, views: Mapping[Place, View]) -> None:
        until = time.monotonic() + self.random.uniform(*self._habit.held_seconds)
        files: dict[Path, str] = {}
        for place, view in views.items():
            with self._refusing():
                files.update(_checksums(place, view.snapshot))
                self._check_rows(place, view)
        while time.monotonic() < until and not self.stage.is_over:
            self.pause(min(BEAT_SECONDS, until - time.monotonic()))
            self._session.heartbeat(txn)
            self._check_files(files)
            for place, view in views.items():
                with self._refusing():
                    self._check_rows(place, view)

    def _begin(self, txn: int, places: tuple[Place, ...]) -> dict[Place, View]:
        if self._habit.trino:
            self._session.take_lock(txn, places, Access.READ)
        asked = time.monotonic()
        txns = self._session.transactions()
        taken = time.monotonic()
        if not self._habit.trino:
            self._session.take_lock(txn, places, Access.READ)
        views = {}
        for place in places:
            views[place] = View(self._session.snapshot(place.table, txns, trino=self._habit.trino), asked, taken)
            check_snapshot(self.ledger, place, views[place])
        return views

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Counts listings that the engine's own rules refuse.

        Hive 3, and Trino on both, refuse a snapshot older than the first base where that is a compaction's, although
        all deltas are still there; to Hive 4 such a base is not there yet. So it is with Hive 3's own compactor.
        """
        try:
            yield
        except NotEnoughHistoryError:
            if not self._habit.trino and not self._session.is_hive_3:
                raise
            self.figures["listings refused because of a first base"] += 1

    def _check_rows(self, place: Place, view: View) -> None:
        check_rows(self.ledger, place, view, place.read(view.snapshot))
        self.figures["readings"] += 1

    @staticmethod
    def _check_files(files: Mapping[Path, str]) -> None:
        """The files of the first listing, as a query reads them that was planned long ago."""
        for file, checksum in files.items():
            if _checksum(file) != checksum:
                raise RunFailedError(f"{file} changed under a reader")


def _checksums(place: Place, snapshot: Snapshot) -> dict[Path, str]:
    return {file: _checksum(file) for file in live_files(place.folder, snapshot)}


def _checksum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
