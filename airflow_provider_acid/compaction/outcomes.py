"""Small values that travel between sensor, operator and cleaner; each fits into an XCom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.json_fields import JsonObject
from airflow_provider_acid.exceptions import AcidError, ConfigurationError, MisnamedError, ObjectNotFoundError
from airflow_provider_acid.plan.plan import CompactionType

QUEUE_PROPERTIES = tuple(
    f"compactor.{name}" for name in ("hive.compactor.job.queue", "mapreduce.job.queuename", "mapred.job.queue.name")
)
"""Properties of a table that name its jobs' queue of the cluster; the first that is set counts, as for Hive's jobs."""


def job_queue_of(table_parameters: Mapping[str, str]) -> str | None:
    """The queue of the cluster that a table's properties name (:data:`QUEUE_PROPERTIES`)."""
    return next((table_parameters[name] for name in QUEUE_PROPERTIES if table_parameters.get(name)), None)


@dataclass(frozen=True)
class DuePartition:
    """A partition that is due for compaction.

    :param type: what the thresholds, or the request, ask for.
    :param reason: one sentence with the figures that decided.
    :param request_id: id of somebody else's waiting request in the compaction queue; None for one of our own.
    :param job_queue: queue of the cluster that the table asks for; None for the configured one.
    :param was_seen: whether it was looked at, and may have been dropped since; else somebody names it, who is told
        where there is no such partition.
    :param metastore_id: id of the database of the metastore where it was found due; None where that is not known.
    """

    entity: Entity
    type: CompactionType
    reason: str
    request_id: int | None = None
    job_queue: str | None = None
    was_seen: bool = False
    metastore_id: str | None = None

    def to_json(self) -> dict[str, object]:
        """The value as a small JSON object."""
        given = {
            "request_id": self.request_id,
            "job_queue": self.job_queue,
            "was_seen": self.was_seen or None,
            "metastore_id": self.metastore_id,
        }
        return {
            **asdict(self.entity),
            **{"type": self.type.value, "reason": self.reason},
            **{name: value for name, value in given.items() if value is not None},
        }

    @classmethod
    def from_json(cls, data: JsonObject) -> DuePartition:
        """Read the value; all but database and table may be missing, and the type is major then.

        :raises ConfigurationError: the object is no due partition.
        """
        kind = (fields.optional_text(data, "type") or CompactionType.MAJOR.value).lower()
        if kind not in {known.value for known in CompactionType}:
            raise ConfigurationError(
                f"type {kind!r} of a partition", "is no type of compaction", "write major or minor"
            )
        reason = fields.optional_text(data, "reason") or "asked for"
        given = {**data, "entity": data, "type": kind, "reason": reason, "was_seen": data.get("was_seen", False)}
        return fields.read_as(cls, given)


def check_metastore(due: Iterable[DuePartition], own: str | None) -> None:
    """Refuse partitions that were found due elsewhere: each would seem to have been dropped since, or be another's.

    :param own: id of the database of the metastore where they are to be compacted; None where that is not known.
    :raises ConfigurationError: some were found due in another one.
    """
    for one in due:
        if own is not None and one.metastore_id not in (None, own):
            raise ConfigurationError(
                str(one.entity),
                f"was found due in another metastore (its database has the id {one.metastore_id}) than the one where "
                f"it is to be compacted ({own})",
                "give the sensor and the operator the same hive_acid_conn_id",
            )


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

    @classmethod
    def unless_gone(cls, due: DuePartition, error: AcidError, outcome: Outcome) -> Outcome:
        """The outcome of an error, or one that fails no task where a partition that was seen was dropped since."""
        if not due.was_seen or not isinstance(error, ObjectNotFoundError) or isinstance(error, MisnamedError):
            return outcome
        message = f"it was dropped since it was found due ({error.subject}: {error.reason})"
        return replace(outcome, state=OutcomeState.SKIPPED, message=message)

    def to_json(self) -> dict[str, object]:
        """The value as a small JSON object."""
        figures = {name: value for name, value in asdict(self).items() if name != "entity"}
        return {**asdict(self.entity), **figures, "state": self.state.value, "targets": list(self.targets)}
