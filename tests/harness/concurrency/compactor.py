"""Compactions, cleanings and undos in a loop, with the package's own classes; the merge runs in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaner import Cleaner
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.housekeep.undo import Undo
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.steps import StepListener, ignore_steps
from airflow_provider_acid.compaction.work.worker import Worker
from airflow_provider_acid.exceptions import OwnershipLostError, RefusedError
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.queues import open_queue
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.thresholds import Thresholds
from tests.harness.compaction_chain import compact_with
from tests.harness.concurrency.places import Place
from tests.harness.concurrency.sandman import Drowsiness
from tests.harness.concurrency.stage import Actor, RunFailedError, Stage

SETTINGS = CompactionSettings(
    thresholds=Thresholds(delta_num_threshold=1),
    minor_lock_wait_seconds=4.0,
    cleaner_lock_wait_seconds=6.0,
    slice_bytes=1,
    keep_replaced_hours=1.5 / 3600,
)
"""A cleaning comes that much later, so that an undo may come before it."""

_REST_SECONDS = (0.1, 0.6)
_MINORS = 0.65


class Compactor:
    """The package's worker and cleaner on connections of their own.

    :param identity: of the task.
    """

    def __init__(self, worker: Worker, cleaner: Cleaner, undo: Undo, queue: CompactionQueue) -> None:
        self.worker = worker
        self.cleaner = cleaner
        self.undo = undo
        self.queue = queue

    def compact(self, place: Place, type: CompactionType) -> Outcome:
        """Serves the request that waits for a partition, or makes one."""
        waiting = self.queue.rows(entity=place.entity, state=CompactionState.INITIATED)
        foreign = [row for row in waiting if RequestPool.parse(row.pool) is None]
        request_id = foreign[0].id if foreign else None
        return compact_with(self.worker, DuePartition(place.entity, type, "concurrency run", request_id)).outcome


@contextmanager
def compactor(stage: Stage, identity: str, on_step: StepListener = ignore_steps) -> Iterator[Compactor]:
    """A compactor in the name of a task."""
    with stage.client() as client:
        queue = open_queue(client, stage.hive_database())

        def transaction(entity: Entity, agent_info: str) -> CompactionTransaction:
            return CompactionTransaction(client, entity, agent_info=agent_info)

        worker = Worker(client, queue, transaction, SETTINGS, identity=identity, host="concurrency", on_step=on_step)
        yield Compactor(worker, Cleaner(client, queue, SETTINGS), Undo(client, queue, SETTINGS), queue)


class CompactionLoop(Actor):
    """Compacts one partition after the other, minor and major.

    :param number: unique among the run's compactors.
    :param drowsy: whether it stops its process now and then; somebody has to wake it.
    """

    def __init__(self, stage: Stage, number: int, drowsy: bool = False) -> None:
        super().__init__(stage, f"compactor-{number}")
        self._on_step: StepListener = Drowsiness(self.random) if drowsy else ignore_steps

    def act(self) -> None:
        with compactor(self.stage, self.name, self._on_step) as parts:
            while not self.stage.is_over:
                self._compact(parts)
                self.pause(self.random.uniform(*_REST_SECONDS))

    def _compact(self, parts: Compactor) -> None:
        place = self.random.choice(self.stage.places)
        wanted = CompactionType.MINOR if self.random.random() < _MINORS else CompactionType.MAJOR
        begun = time.monotonic()
        outcome = parts.compact(place, wanted)
        self.ledger.note(f"{self.name}: {wanted.value} of {place} since {begun:.3f}: {outcome}")
        if outcome.state is OutcomeState.FAILED and not self.overslept_since(begun):
            raise RunFailedError(f"{wanted.value} of {place} failed: {outcome}")
        self.figures[f"{_what(outcome, wanted)} {outcome.state.value}"] += 1


class CleaningLoop(Actor):
    """Cleans whatever can be cleaned, again and again."""

    def __init__(self, stage: Stage, number: int) -> None:
        super().__init__(stage, f"cleaner-{number}")

    def act(self) -> None:
        with compactor(self.stage, self.name) as parts:
            while not self.stage.is_over:
                begun = time.monotonic()
                try:
                    self._clean(parts.cleaner)
                except OwnershipLostError:
                    if not self.overslept_since(begun):
                        raise
                self.pause(self.random.uniform(*_REST_SECONDS))

    def _clean(self, cleaner: Cleaner) -> None:
        for cleaning in cleaner.clean([place.entity for place in self.stage.places]):
            if cleaning.state is CleaningState.FAILED:
                raise RunFailedError(f"cleaning failed: {cleaning}")
            if cleaning.state is not CleaningState.WAITING:
                self.ledger.note(f"{self.name}: {cleaning}")
            self.figures[f"cleanings {cleaning.state.value}"] += 1
            self.figures["obsolete directories deleted"] += len(cleaning.deleted)


class UndoLoop(Actor):
    """Takes back whatever can be taken back, again and again."""

    def __init__(self, stage: Stage, number: int) -> None:
        super().__init__(stage, f"undoer-{number}")

    def act(self) -> None:
        with compactor(self.stage, self.name) as parts:
            while not self.stage.is_over:
                self._undo(parts)
                self.pause(self.random.uniform(*_REST_SECONDS))

    def _undo(self, parts: Compactor) -> None:
        ready = parts.queue.ready_to_clean([place.entity for place in self.stage.places])
        if not ready:
            return
        row = self.random.choice(ready)
        try:
            done = parts.undo.undo(row.entity)
        except (RefusedError, OwnershipLostError) as error:
            self.ledger.note(f"{self.name}: {error}")
            self.figures["undos refused"] += 1
            return
        self.ledger.note(f"{self.name}: {done}")
        self.figures["undos done"] += bool(done.removed)


def _what(outcome: Outcome, wanted: CompactionType) -> str:
    if not outcome.targets:
        return f"compactions ({wanted.value})"
    if outcome.targets[0].startswith("base_"):
        return "compactions (major)"
    return f"compactions (minor, {len(outcome.targets)} directories)"
