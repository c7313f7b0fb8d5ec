"""What came of compactions and cleanings, one record each, as lines of JSON."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import takewhile

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.plan.plan import CompactionType

log = logging.getLogger(__name__)

MAX_MESSAGE_CHARACTERS = 2000


class RecordKind(str, Enum):
    """What a record tells of."""

    COMPACTION = "compaction"
    CLEANING = "cleaning"


@dataclass(frozen=True)
class TaskPlace:
    """The task that did it; empty texts outside of Airflow."""

    dag_id: str = ""
    run_id: str = ""
    task_id: str = ""
    map_index: int = -1


@dataclass(frozen=True)
class HistoryRecord:
    """How one partition's compaction or cleaning ended.

    :param id: unique; a record may be read twice while files are merged.
    :param metastore: id of Airflow's connection to the metastore.
    :param ended_ms: when, in milliseconds since 1970, by the clock of the worker.
    :param type: ``major`` or ``minor``; None for a cleaning.
    :param state: of :class:`~..compaction.outcomes.OutcomeState`, or of a cleaning.
    :param seconds: from the claim to the commit; None where it is not known.
    :param deleted: directories and files that a cleaning deleted.
    """

    id: str
    metastore: str
    entity: Entity
    ended_ms: int
    kind: RecordKind
    type: str | None
    state: str
    message: str
    request_id: int | None
    task: TaskPlace
    seconds: float | None = None
    bytes_before: int = 0
    bytes_after: int = 0
    rows: int = 0
    deleted: int = 0


def failures_since(history: Iterable[HistoryRecord], metastore: str, since_ms: int) -> list[HistoryRecord]:
    """The compactions and cleanings of a metastore that failed or were refused, in the order of the history.

    :param history: newest first; it is looked at no further back than is asked for.
    :param since_ms: those that ended before are left out.
    """
    failed = {state.value for state in OutcomeState if state.is_failure} | {CleaningState.FAILED.value}
    late = takewhile(lambda each: each.ended_ms >= since_ms, history)
    return [each for each in late if each.metastore == metastore and each.state in failed]


@dataclass(frozen=True)
class RecordMaker:
    """Makes the records of one task's results.

    :param token: unique for each writing; beginning of the records' ids.
    """

    metastore: str
    task: TaskPlace
    ended_ms: int
    token: str

    def of_outcomes(self, items: Sequence[DuePartition], outcomes: Sequence[Outcome]) -> list[HistoryRecord]:
        """One for each outcome.

        :param items: what was asked for; the type of what was published may differ and then counts.
        """
        asked = {item.entity: item.type.value for item in items}
        return [
            HistoryRecord(
                id=f"{self.token}/{number}",
                metastore=self.metastore,
                entity=outcome.entity,
                ended_ms=self.ended_ms,
                kind=RecordKind.COMPACTION,
                type=_published_type(outcome) or asked.get(outcome.entity),
                state=outcome.state.value,
                message=outcome.message[:MAX_MESSAGE_CHARACTERS],
                request_id=outcome.request_id,
                task=self.task,
                seconds=outcome.seconds,
                bytes_before=outcome.bytes_before,
                bytes_after=outcome.bytes_after,
                rows=outcome.rows,
            )
            for number, outcome in enumerate(outcomes)
        ]

    def of_cleanings(self, cleanings: Iterable[Cleaning]) -> list[HistoryRecord]:
        """One for each cleaning."""
        return [
            HistoryRecord(
                id=f"{self.token}/{number}",
                metastore=self.metastore,
                entity=cleaning.entity,
                ended_ms=self.ended_ms,
                kind=RecordKind.CLEANING,
                type=None,
                state=cleaning.state.value,
                message=cleaning.message[:MAX_MESSAGE_CHARACTERS],
                request_id=cleaning.request_id,
                task=self.task,
                deleted=len(cleaning.deleted),
            )
            for number, cleaning in enumerate(cleanings)
        ]


def _published_type(outcome: Outcome) -> str | None:
    if not outcome.targets:
        return None
    is_base = any(target.startswith("base_") for target in outcome.targets)
    return str(CompactionType.MAJOR.value if is_base else CompactionType.MINOR.value)
