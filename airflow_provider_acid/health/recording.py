"""What sensor, operators and cleaner call: best effort, nothing where no location is set, pyarrow only when needed."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.initiator import EvaluationObserver
from airflow_provider_acid.compaction.evaluate.looking import Seen
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.health.files import now_ms
from airflow_provider_acid.health.history import HistoryRecord, RecordMaker, TaskPlace
from airflow_provider_acid.health.json_lines import to_lines
from airflow_provider_acid.health.report import ReportedFinding
from airflow_provider_acid.health.store import HealthStore
from airflow_provider_acid.plan.thresholds import CompactionDecision

if TYPE_CHECKING:
    from airflow_provider_acid.health.recorder import EvaluationRecorder

log = logging.getLogger(__name__)

PARTITIONS_SECONDS = 60.0
RENEWAL_SECONDS = 30.0
HISTORY_SECONDS = 15.0
"""Longest waits for a store; what it has not taken by then is lost to the page, and to nothing else."""


@contextmanager
def recording_evaluation(
    location: str, metastore: str, storages: Storages, *, looks_at_all: bool
) -> Iterator[EvaluationObserver | None]:
    """An observer whose findings are published when the block ends without an error; None where no location is set.

    :param location: ``[hive_acid] health_location``; empty for none.
    :param metastore: id of Airflow's connection to the metastore.
    :param looks_at_all: see :class:`~.recorder.EvaluationRecorder`.
    """
    if not location:
        yield None
        return
    from airflow_provider_acid.health.recorder import EvaluationRecorder

    with EvaluationRecorder(metastore, looks_at_all=looks_at_all) as recorder:
        observer = _Guarded(recorder)
        yield observer
        if not observer.broken:
            what = "the figures of partitions are not written for the page"
            try_within(PARTITIONS_SECONDS, what, lambda: recorder.publish(HealthStore.at(location, storages)))


def record_renewed(
    location: str, metastore: str, storages: Storages, look: Callable[[EvaluationObserver], None]
) -> None:
    """Write how partitions are after work on them, if a location is set.

    :param look: looks at them, and tells the observer; called in another thread.
    """
    if not location:
        return

    def write() -> None:
        from airflow_provider_acid.health.renewal import RenewalRecorder

        recorder = RenewalRecorder(metastore)
        look(recorder)
        recorder.publish(HealthStore.at(location, storages))

    asked = "metastore, storage or [hive_acid] health_location"
    try_within(RENEWAL_SECONDS, "the figures of partitions are not renewed for the page", write, asked)


def record_history(
    location: str,
    metastore: str,
    storages: Storages,
    task: TaskPlace,
    records: Callable[[RecordMaker], list[HistoryRecord]],
) -> None:
    """Write what came of a task's work, if a location is set.

    :param records: makes the records, e.g. ``lambda make: make.of_outcomes(items, outcomes)``.
    """
    if not location:
        return

    def write() -> None:
        maker = RecordMaker(metastore, task, now_ms(), uuid.uuid4().hex)
        HealthStore.at(location, storages).add_history(records(maker))

    try_within(HISTORY_SECONDS, "the history is not written for the page", write)


def record_report(location: str, metastore: str, storages: Storages, findings: Sequence[ReportedFinding]) -> None:
    """Write what the doctor found, if a location is set."""
    if not location:
        return

    def write() -> None:
        HealthStore.at(location, storages).replace_report(metastore, to_lines(findings))

    try_within(HISTORY_SECONDS, "the doctor's report is not written for the page", write)


class _Guarded:
    """An observer that gives up at its first error instead of disturbing the evaluation."""

    def __init__(self, recorder: EvaluationRecorder) -> None:
        self._recorder = recorder
        self.broken = False

    def saw(self, seen: Seen, decision: CompactionDecision, hindrance: str | None) -> None:
        self._try(lambda: self._recorder.saw(seen, decision, hindrance))

    def passed_over(self, entity: Entity, reason: str) -> None:
        self._try(lambda: self._recorder.passed_over(entity, reason))

    def _try(self, note: Callable[[], None]) -> None:
        if self.broken:
            return
        try:
            note()
        except Exception as error:  # whatever it is: an evaluation does not depend on it
            self.broken = True
            # What it had open may be what the evaluation lacks.
            self._recorder.drop()
            log.warning("the figures of partitions are not written for the page: %s", error)


def try_within(
    seconds: float, what: str, action: Callable[[], None], asked: str = "[hive_acid] health_location"
) -> bool:
    """Run an action in a thread and wait for it at most so long; whether it succeeded in that time.

    :param what: for the warning where it does not, e.g. ``the history of compactions is not written``.
    :param asked: who is waited for.
    """
    errors: list[Exception] = []

    def attempt() -> None:
        try:
            action()
        except Exception as error:  # whatever it is, the caller's work is done
            errors.append(error)

    thread = threading.Thread(target=attempt, name="health", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        log.warning("%s: %s does not answer within %g s", what, asked, seconds)
        return False
    if errors:
        log.warning("%s: %s", what, errors[0])
    return not errors
