"""How far the cleaning of one compaction is, and what was done about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum

from airflow_provider_acid.acid.entity import Entity


class CleaningState(str, Enum):
    """How far the cleaning of one compaction is.

    What is kept is done for this time: its files stay for an undo, or are deleted, and only its row stays.
    """

    READY = "ready"
    WAITING = "waiting"
    CLEANED = "cleaned"
    KEPT = "kept"
    FAILED = "failed"


@dataclass(frozen=True)
class Cleaning:
    """What was found or done about one 'ready for cleaning' row.

    :param message: one sentence: what it waits for, or what was done.
    :param deleted: deleted directories and files, relative to the partition.
    """

    entity: Entity
    request_id: int
    state: CleaningState
    message: str
    deleted: tuple[str, ...] = ()

    @property
    def has_changed(self) -> bool:
        """Whether the partition, or what the metastore keeps of it, is other than before."""
        return self.state is CleaningState.CLEANED or bool(self.deleted)

    def to_json(self) -> dict[str, object]:
        """The value as a small JSON object."""
        return {
            **asdict(self.entity),
            "request_id": self.request_id,
            "state": self.state.value,
            "message": self.message,
            "deleted": len(self.deleted),
        }
