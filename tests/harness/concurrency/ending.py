"""The end of a run: everything compacted and cleaned, the rows those of the ledger, and nothing left behind."""

from __future__ import annotations

import time

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.concurrency.compactor import Compactor, compactor
from tests.harness.concurrency.judge import View, check_rows, check_snapshot
from tests.harness.concurrency.places import Place
from tests.harness.concurrency.session import Session
from tests.harness.concurrency.stage import Actor, RunFailedError, Stage

POLL_SECONDS = 0.5


class Ending(Actor):
    """Acts alone, when all others have ended."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage, "ending")

    def act(self) -> None:
        with self.stage.session() as session, compactor(self.stage, "ending") as parts:
            self._wait_for_the_dead(session)
            self._check_rows(session)
            for place in self.stage.places:
                self._compact_and_clean(place, parts)
            self._check_rows(session)
            self._check_leftovers(parts)

    def _wait_for_the_dead(self, session: Session) -> None:
        """Until the metastore has aborted the transactions that fell silent."""
        while left := session.transactions().open:
            if self.stage.is_over:
                raise RunFailedError(f"transactions {sorted(left)} are still open")
            time.sleep(POLL_SECONDS)

    def _compact_and_clean(self, place: Place, parts: Compactor) -> None:
        """Until a single base is left; a published compaction of before may have to be cleaned first."""
        while True:
            outcome = parts.compact(place, CompactionType.MAJOR)
            self.ledger.note(f"ending: {outcome}")
            if outcome.state is OutcomeState.FAILED:
                raise RunFailedError(str(outcome))
            cleanings = parts.cleaner.clean([place.entity])
            self.ledger.note(f"ending: {cleanings}")
            failed = [cleaning for cleaning in cleanings if cleaning.state is CleaningState.FAILED]
            if failed:
                raise RunFailedError(f"cleaning failed: {failed}")
            if not _left_in(place) and not self._live_rows(place, parts):
                return
            if self.stage.is_over:
                raise RunFailedError(
                    f"{place} is never done: {_left_in(place)}, {self._live_rows(place, parts)}, {outcome}, {cleanings}"
                )

    def _check_rows(self, session: Session) -> None:
        for place in self.stage.places:
            asked = time.monotonic()
            txns = session.transactions()
            taken = time.monotonic()
            for trino in False, True:
                snapshot = session.snapshot(place.table, txns, trino=trino)
                view = View(snapshot, asked, taken)
                check_snapshot(self.ledger, place, view)
                rows = check_rows(self.ledger, place, view, place.read(snapshot))
            self.figures["rows in the end"] += len(rows)

    def _check_leftovers(self, parts: Compactor) -> None:
        for table in self.stage.tables:
            wanted = {partition for partition in table.partitions if partition is not None}
            found = {child.name for child in table.location.iterdir()}
            if wanted and found != wanted:
                raise RunFailedError(f"{table.name}: {found - wanted} left behind")
        rows = [row for place in self.stage.places for row in parts.queue.rows(entity=place.entity)]
        live = [str(row) for row in rows if not row.state.is_terminal]
        if live:
            raise RunFailedError(f"requests left in the queue: {live}")
        for row in rows:
            self.figures[f"requests {row.state.value}"] += 1

    @staticmethod
    def _live_rows(place: Place, parts: Compactor) -> list[str]:
        return [str(row) for row in parts.queue.rows(entity=place.entity) if not row.state.is_terminal]


def _left_in(place: Place) -> list[str]:
    """Names that should be gone: all but the newest base, or the only delta, which needs no compaction."""
    names = sorted(child.name for child in place.folder.iterdir())
    if len(names) == 1 and names[0].startswith("delta_"):
        return []
    bases = [name for name in names if name.startswith("base_")]
    return [name for name in names if name not in bases[-1:]]
