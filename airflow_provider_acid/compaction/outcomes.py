"""Small values that travel between sensor, operator and cleaner; each fits into an XCom."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.json_fields import JsonObject
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.plan.plan import CompactionType


@dataclass(frozen=True)
class DuePartition:
    """A partition that is due for compaction.

    :param type: what the thresholds, or the request, ask for.
    :param reason: one sentence with the figures that decided.
    :param request_id: id of somebody else's waiting request in the compaction queue; None for one of our own.
    """

    entity: Entity
    type: CompactionType
    reason: str
    request_id: int | None = None

    def to_json(self) -> dict[str, object]:
        """The value as a small JSON object."""
        return {**asdict(self.entity), "type": self.type.value, "reason": self.reason, "request_id": self.request_id}

    @classmethod
    def from_json(cls, data: JsonObject) -> DuePartition:
        """Read the value; ``type`` (default major), ``reason`` and ``request_id`` may be missing.

        :raises ConfigurationError: the object is no due partition.
        """
        kind = (fields.optional_text(data, "type") or CompactionType.MAJOR.value).lower()
        if kind not in {known.value for known in CompactionType}:
            raise ConfigurationError(
                f"type {kind!r} of a partition", "is no type of compaction", "write major or minor"
            )
        reason = fields.optional_text(data, "reason") or "asked for"
        given = {**data, "entity": data, "type": kind, "reason": reason}
        return fields.read_as(cls, given)


class OutcomeState(str, Enum):
    """How one partition's compaction ended."""

    COMPACTED = "compacted"
    NOTHING_TO_MERGE = "nothing_to_merge"
    SKIPPED = "skipped"
    REFUSED = "refused"
    FAILED = "failed"

    @property
    def is_failure(self) -> bool:
        """Whether the task that asked for it has to fail."""
        return self in (OutcomeState.REFUSED, OutcomeState.FAILED)


@dataclass(frozen=True)
class Outcome:
    """What came of one partition.

    :param request_id: row of the compaction queue; None where none was made.
    :param message: one sentence.
    :param targets: names of the published directories.
    :param bytes_before: bytes of the merged input files.
    :param bytes_after: bytes of the published files.
    :param rows: rows in the published files.
    :param seconds: from the begin of its work to its commit; None where nothing was published.
    """

    entity: Entity
    state: OutcomeState
    message: str
    request_id: int | None = None
    targets: tuple[str, ...] = ()
    bytes_before: int = 0
    bytes_after: int = 0
    rows: int = 0
    seconds: float | None = None

    def to_json(self) -> dict[str, object]:
        """The value as a small JSON object."""
        figures = {name: value for name, value in asdict(self).items() if name != "entity"}
        return {**asdict(self.entity), **figures, "state": self.state.value, "targets": list(self.targets)}
