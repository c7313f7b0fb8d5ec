"""What came of a plan; with a JSON form.

A result is a report, not a proof: the operator checks it against the plan and the storage before it publishes anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import AcidError, ConfigurationError, ForbiddenError
from airflow_provider_acid.plan.plan import FORMAT_VERSION, CompactionPlan, OutputKind


class Fault(str, Enum):
    """Where the cause lies that a plan was not carried out, as far as that is known."""

    UNKNOWN = "unknown"
    """It may pass, and is tried again."""
    PARTITION = "partition"
    """In the partition's own files: another try ends the same way."""
    ENVIRONMENT = "environment"
    """In packages, rights or settings: another try ends the same way, and so does every partition."""

    @classmethod
    def of(cls, error: AcidError) -> Fault:
        """The fault that an error speaks of."""
        if isinstance(error, ConfigurationError | ForbiddenError):
            return cls.ENVIRONMENT
        return cls.PARTITION if error.is_permanent else cls.UNKNOWN


@dataclass(frozen=True)
class OutputFile:
    """What became of one bucket of the plan, counted once while writing and once more when it was read back.

    Insert-only tables may have several per bucket, and count no rows where their format does not (text).

    :param name: the file's name; None where nothing was left to write.
    :param rows_in: rows (or delete events) of the input files that belong to this bucket, before any was dropped.
    :param rows_aborted: dropped because their write id is aborted.
    :param rows_deleted: dropped because a valid delete event names them.
    :param rows_repeated: delete events dropped because another file holds the same one.
    :param rows_out: in the file; ``rows_in - rows_aborted - rows_deleted - rows_repeated``.
    :param attempt: path below the partition's location where the file lies until it is published; None where it
        lies in its staged directory.
    """

    output: OutputKind
    bucket: int
    name: str | None
    size_bytes: int
    stripes: int
    rows_in: int
    rows_aborted: int
    rows_deleted: int
    rows_repeated: int
    rows_out: int
    attempt: str | None = None


@dataclass(frozen=True)
class CompactionResult:
    """What the Spark job reports about one plan.

    :param attempt: the plan's token.
    :param plan_digest: of the plan that was carried out; see :attr:`~.plan.CompactionPlan.digest`.
    :param error: None when the output directory is complete; else the message of what went wrong.
    :param files: what became of every bucket of the plan.
    :param seconds: wall time from the first task to the last verified file.
    :param fault: where the cause of the error lies; None without one.
    """

    attempt: str
    plan_digest: str
    entity: Entity
    error: str | None
    files: tuple[OutputFile, ...]
    seconds: float
    fault: Fault | None = None

    @classmethod
    def failed(cls, plan: CompactionPlan, error: str, seconds: float, fault: Fault = Fault.UNKNOWN) -> CompactionResult:
        """The result of a plan that could not be carried out."""
        return cls(plan.attempt, plan.digest, plan.entity, error, (), seconds, fault)

    @classmethod
    def unread(cls, error: str) -> CompactionResult:
        """The word on a plan that could not be read, so that nothing is known of it."""
        return cls("", "", Entity("", ""), error, (), 0.0)

    def to_json(self) -> str:
        """The result as a JSON document."""
        return fields.versioned_document(self, FORMAT_VERSION)

    @classmethod
    def from_json(cls, document: str | bytes) -> CompactionResult:
        """Read a result.

        :raises ConfigurationError: the document is not a result of this version.
        """
        return fields.read_as(cls, fields.versioned(document, "compaction result", FORMAT_VERSION))
