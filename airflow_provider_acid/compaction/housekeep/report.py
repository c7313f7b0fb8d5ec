"""What housekeeping did, and what it found stuck, as values, as lines of a log, and as a small XCom."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from enum import Enum

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.queue_figures import QueueFigures
from airflow_provider_acid.compaction.text_table import LINES, text_table


class Chore(str, Enum):
    """What housekeeping can do to one partition."""

    SETTLED = "settled"
    CLAIM_ENDED = "claim ended"
    CLAIM_KEPT = "claim kept"
    REMOVED = "removed"
    TWIN_REMOVED = "twin removed"


@dataclass(frozen=True)
class Deed:
    """Something that was done.

    :param message: one sentence.
    """

    entity: Entity
    chore: Chore
    message: str


class StuckKind(str, Enum):
    """What may be stuck."""

    OPEN_TRANSACTION = "oldest open transaction"
    CLEANING = "oldest waiting cleaning"
    FAILURES = "repeated failures"
    REQUEST = "request nobody serves"
    CLAIM = "claim"
    TWINS = "twin results"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Stuck:
    """Something that somebody should look at.

    :param subject: the partition, or the transaction.
    :param age_seconds: how long it has been so; None where that is unknown.
    :param message: one sentence.
    """

    kind: StuckKind
    subject: str
    age_seconds: float | None
    message: str


@dataclass(frozen=True)
class HousekeepingReport:
    """What one round of housekeeping came to.

    :param to_clean: partitions whose finished compactions nobody seems to clean, for the cleaner.
    :param queue: how the queue stands after it, for the tables of the selection.
    """

    deeds: tuple[Deed, ...]
    stuck: tuple[Stuck, ...]
    to_clean: tuple[Entity, ...]
    queue: QueueFigures = field(default_factory=QueueFigures)

    def lines(self) -> list[str]:
        """Two small tables for the log."""
        done = [(deed.chore.value, str(deed.entity), deed.message) for deed in self.deeds]
        stuck = [(item.kind.value, item.subject, _age(item.age_seconds), item.message) for item in self.stuck]
        return [
            *text_table("done", ("chore", "partition", "what"), done),
            *text_table("stuck", ("kind", "subject", "age", "what"), stuck),
        ]

    def to_json(self) -> dict[str, object]:
        """A small JSON object: counts of what was done, what is stuck, and the partitions to clean."""
        return {
            "done": dict(Counter(deed.chore.value for deed in self.deeds)),
            "stuck": [{**asdict(item), "kind": item.kind.value} for item in self.stuck[:LINES]],
            "partitions": [asdict(entity) for entity in self.to_clean],
        }


def _age(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min"
