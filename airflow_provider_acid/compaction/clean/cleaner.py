"""Hive's Cleaner: wait until nobody can still need the merged directories, delete them, tell the metastore.

The rule is stricter than Hive's: a row is cleaned when every transaction up to and including the highest one that
existed at the compaction's commit (on Hive 3.1, after its rename) has ended, and on Hive 3.1 every lock of that time
is gone. :mod:`wait` judges that by one look for all rows; :mod:`row_cleaner` then cleans each, many at once where more
connections may be opened.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import replace

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.clean.leftovers import forget_leftovers
from airflow_provider_acid.compaction.clean.row_cleaner import RowCleaner
from airflow_provider_acid.compaction.clean.wait import OPENING_SECONDS, Horizon, Readers
from airflow_provider_acid.compaction.facts import FactsOfMany
from airflow_provider_acid.compaction.neighbours import Neighbours
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.recover.recovery import Recovery
from airflow_provider_acid.compaction.settings import CleaningLockAction, CompactionSettings
from airflow_provider_acid.compaction.steps import StepListener, ignore_steps
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.exceptions import AcidError, MetastoreUnavailableError, ObjectNotFoundError, UnexpectedError
from airflow_provider_acid.metastore.queue import KEEP_SECONDS, CompactionQueue
from airflow_provider_acid.metastore.queue_rules import in_cleaning_order
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState

log = logging.getLogger(__name__)

HANDS = 8
"""So many clean at once at most; each has a connection, and waits for metastore and store most of the time."""

LOOKED_UP_TOGETHER = 32
"""Of so many rows the tables and partitions are asked for together; the last is cleaned a few seconds after that."""

LOCKED_TOGETHER = 64
"""Of up to so many, where every hand has as many and their locks are taken together: a call about them costs the
metastore little more than one about half of them."""

Connect = Callable[[], AbstractContextManager[tuple[AcidMetastoreClient, CompactionQueue]]]
"""Opens a connection for the thread that calls it."""


class Cleaner:
    """Looks at and cleans rows of the compaction queue; belongs to one thread, like its client.

    :param connect: opens further connections, for as many threads; None where the own one has to do.
    :param keeps_claims: whether the metastore is told of claims that wait that they are not forgotten.
    """

    def __init__(
        self,
        client: AcidMetastoreClient,
        queue: CompactionQueue,
        settings: CompactionSettings,
        *,
        connect: Connect | None = None,
        keeps_claims: bool = True,
        on_step: StepListener = ignore_steps,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._queue = queue
        self._settings = settings
        self._connect = connect
        self._keeps_claims = keeps_claims
        self._recovery = Recovery(client, queue, settings)
        self._on_step = on_step
        self._sleep = sleep
        self._marked: list[tuple[CompactionRow, int]] = []

    def look(self, entities: Collection[Entity]) -> tuple[Cleaning, ...]:
        """Whether these entities can be cleaned, and if not, what each waits for.

        Changes nothing, but may tell the metastore of a claim that waits that it is not forgotten. Judged by the newest
        compaction of each: an older one that :meth:`clean` could not complete goes with it.
        """
        rows = {row.entity: row for row in self._queue.ready_to_clean(entities)}.values()
        if not rows:
            return ()
        readers = self._readers()
        return tuple(self._judge(row, readers) for row in rows)

    def clean(self, entities: Collection[Entity]) -> tuple[Cleaning, ...]:
        """Clean what can be cleaned, older compactions first; rows that cannot yet are returned as waiting."""
        rows, outcomes = self._settled(entities)
        unsettled = tuple(
            Cleaning(outcome.entity, outcome.request_id or 0, CleaningState.FAILED, outcome.message)
            for outcome in outcomes
            if outcome.state is OutcomeState.FAILED
        )
        if not rows:
            return unsettled
        self._marked.clear()
        # A transaction that is just being opened has an id but is not listed yet: look twice.
        readers = self._readers()
        opening_ends_monotonic = time.monotonic() + OPENING_SECONDS
        done = {row.id: self._judge(row, readers) for row in rows}
        locations = self._locations(_ready(rows, done))
        self._sleep(max(opening_ends_monotonic - time.monotonic(), 0.0))
        readers.look_again()
        done |= {row.id: self._judge(row, readers) for row in _ready(rows, done)}
        kept = {row.entity for row in rows if done[row.id].state is CleaningState.KEPT}
        ready = _ready(rows, done)
        done |= self._clean_together(ready, readers.horizon, locations)
        # What stood in the way of an older compaction's row may have gone with the directories of a newer one.
        freed = {row.entity for row in ready if done[row.id].state is CleaningState.CLEANED}
        again = [row for row in ready if row.entity in freed and done[row.id].state is not CleaningState.CLEANED]
        for id, cleaning in self._clean_together(again, readers.horizon, locations).items():
            done[id] = replace(cleaning, deleted=done[id].deleted + cleaning.deleted)
        forget_leftovers(self._client, self._queue, self._marked)
        for row in ready:
            if done[row.id].state is CleaningState.WAITING:
                self._keep(row, readers)
                if row.entity in kept:
                    # It may wait for the newer one, which is kept for long; the housekeeping comes back to both.
                    done[row.id] = replace(done[row.id], state=CleaningState.KEPT)
        return (*(done[row.id] for row in rows), *unsettled)

    def _settled(self, entities: Collection[Entity]) -> tuple[list[CompactionRow], tuple[Outcome, ...]]:
        """Rows that are ready to be cleaned, and what came of those that had to be settled before."""
        if self._queue.hive.publishes_by_commit:
            # All rows of the site that wait for a cleaning, which may be many: where one look finds nothing to settle,
            # there is no need for a second.
            ready = self._queue.rows(state=CompactionState.READY_FOR_CLEANING)
            working = self._queue.rows(state=CompactionState.WORKING)
            wanted = set(entities)
            if not any(row.entity in wanted and self._recovery.is_unsettled(row) for row in (*ready, *working)):
                return in_cleaning_order(ready, wanted), ()
        outcomes = self._recovery.settle_uncommitted(entities)
        return self._queue.ready_to_clean(entities), outcomes

    def _clean_together(
        self, rows: Sequence[CompactionRow], horizon: Horizon, locations: Mapping[Entity, str | AcidError]
    ) -> dict[int, Cleaning]:
        """What was done about each row, by its id."""
        parts = deque(self._parts(rows))
        done: dict[int, Cleaning] = {}
        is_over = threading.Event()

        def clean(client: AcidMetastoreClient, queue: CompactionQueue) -> None:
            cleaner = RowCleaner(
                client, queue, self._settings, locations, self._on_step, insists_on_lock=self._insists_on_lock
            )
            with suppress(IndexError):
                while not is_over.is_set():
                    part = parts.popleft()
                    done.update({cleaning.request_id: cleaning for cleaning in cleaner.clean(part, horizon)})
            self._marked += cleaner.marked

        def lend_a_hand(connect: Connect) -> None:
            try:
                with connect() as (client, queue):
                    clean(client, queue)
            except AcidError as error:
                log.warning("One connection less cleans: %s", error)

        others = [] if self._connect is None else [self._connect] * (min(HANDS, len(parts)) - 1)
        with ThreadPoolExecutor(HANDS, thread_name_prefix="acid-cleaning") as hands:
            lent = [hands.submit(lend_a_hand, connect) for connect in others]
            try:
                clean(self._client, self._queue)
            finally:
                # Whatever ended it, nobody begins anything more.
                is_over.set()
            for hand in lent:
                hand.result()
        return done

    def _locations(self, rows: Sequence[CompactionRow]) -> dict[Entity, str | AcidError]:
        """Where the tables and partitions of rows lie, if nobody else can lie there; what is gone is left out."""
        neighbours = Neighbours(self._client, self._queue.database, self._settings.exclusive_locations)
        found: dict[Entity, str | AcidError] = {}
        for part in self._parts(rows):
            known = FactsOfMany(self._client, {row.entity for row in part})
            for row in part:
                try:
                    with suppress(ObjectNotFoundError), Supervised(row.entity):
                        facts = known.of(row.entity)
                        neighbours.check(facts.table, facts.partition)
                        found[row.entity] = facts.location
                except AcidError as error:
                    found[row.entity] = error
        return found

    def _parts(self, rows: Sequence[CompactionRow]) -> list[list[CompactionRow]]:
        """Rows in parts, all rows of a partition in one, in their order."""
        of_entity: dict[Entity, list[CompactionRow]] = {}
        for row in rows:
            of_entity.setdefault(row.entity, []).append(row)
        most = LOCKED_TOGETHER if self._queue.hive.publishes_by_commit else LOOKED_UP_TOGETHER
        size = max(LOOKED_UP_TOGETHER, min(most, -(-len(of_entity) // HANDS)))
        parts: list[list[CompactionRow]] = []
        for some in of_entity.values():
            if not parts or len(parts[-1]) >= size:
                parts.append([])
            parts[-1] += some
        return parts

    def _readers(self) -> Readers:
        return Readers(
            self._client,
            self._settings.cleaner_retention_seconds,
            locks_count=self._queue.hive.has_readers_without_transactions,
            queue_seconds=self._settings.cleaner_lock_wait_seconds if self._insists_on_lock else None,
        )

    @property
    def _insists_on_lock(self) -> bool:
        action = self._settings.cleaner_lock_timeout_action
        if action is CleaningLockAction.BY_VERSION:
            return self._queue.hive.hides_deletions_from_readers
        return action is CleaningLockAction.WAIT

    def _judge(self, row: CompactionRow, readers: Readers) -> Cleaning:
        try:
            with Supervised(row.entity):
                return self._judged(row, readers)
        except UnexpectedError as error:
            return Cleaning(row.entity, row.id, CleaningState.FAILED, str(error))

    def _judged(self, row: CompactionRow, readers: Readers) -> Cleaning:
        kept_seconds = readers.seconds_kept(row, self._settings.keep_replaced_seconds)
        if kept_seconds > 0:
            self._keep(row, readers)
            message = (
                f"what it replaced is kept for {kept_seconds / 3600:.1f} h more, for an undo (keep_replaced_hours)"
            )
            return Cleaning(row.entity, row.id, CleaningState.KEPT, message)
        waiting = readers.waits_for(row)
        if waiting is not None:
            self._keep(row, readers)
            return Cleaning(row.entity, row.id, CleaningState.WAITING, waiting)
        return Cleaning(row.entity, row.id, CleaningState.READY, "no reader can still need the merged directories")

    def _keep(self, row: CompactionRow, readers: Readers) -> None:
        """Where a row that waits is still a claim for everybody else, keep it from being taken back as forgotten."""
        if not self._keeps_claims or not self._queue.hive.is_claimed_until_cleaned:
            return
        if row.start_ms is not None and readers.now_ms - row.start_ms < KEEP_SECONDS * 1000:
            return
        try:
            with Supervised(row.entity):
                self._queue.keep(row)
        except MetastoreUnavailableError:
            raise
        except AcidError as error:
            # As a rule somebody else cleaned it, or it was taken back; the next look tells.
            log.warning("%s", error)


def _ready(rows: Sequence[CompactionRow], judged: Mapping[int, Cleaning]) -> list[CompactionRow]:
    return [row for row in rows if judged[row.id].state is CleaningState.READY]
