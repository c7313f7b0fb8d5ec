"""One partition as an evaluation saw it: its figures, what follows from them, and the directories it has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from airflow_provider_acid.acid.directory import AcidDirectory, BaseDirectory, DeltaDirectory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.thresholds import CompactionDecision

MAX_DIRECTORIES = 500
"""Directories that are kept of one partition, in the order of their write ids; the figures count all."""


class HealthState(str, Enum):
    """What an evaluation found out about a partition."""

    HEALTHY = "healthy"
    DUE_MINOR = "due_minor"
    DUE_MAJOR = "due_major"
    HELD = "held"
    """Due, or not looked at, and left alone for the reason that is given."""


class DirectoryState(str, Enum):
    """What a directory is to a compactor; see :class:`~airflow_provider_acid.acid.directory.AcidDirectory`."""

    CURRENT = "current"
    OBSOLETE = "obsolete"
    ABORTED = "aborted"
    INVISIBLE = "invisible"
    UNCOMMITTED = "uncommitted"
    """Its write ids are open, or above the snapshot."""


@dataclass(frozen=True)
class DirectoryHealth:
    """One ACID directory.

    :param kind: ``base``, ``delta`` or ``delete_delta``.
    :param min_write_id: first write id; of a base 0.
    :param compacted: whether its name or its metadata says that a compaction wrote it.
    """

    path: str
    kind: str
    min_write_id: int
    max_write_id: int
    size_bytes: int
    files: int
    state: DirectoryState
    compacted: bool


@dataclass(frozen=True)
class PartitionHealth:
    """One partition, or table without partitions, at the time of an evaluation.

    :param metastore: id of Airflow's connection to the metastore.
    :param reason: one sentence: what decided.
    :param delta_size_ratio: delta bytes per base byte; None where there are no base bytes.
    :param obsolete_bytes: bytes of obsolete and of aborted directories, which a cleaning would free.
    :param evaluated_ms: when the figures were taken, in milliseconds since 1970; None where they never were.
    :param directories: at most :data:`MAX_DIRECTORIES`; ``directory_count`` counts all.
    """

    metastore: str
    entity: Entity
    state: HealthState
    reason: str
    deltas: int = 0
    delete_deltas: int = 0
    base_bytes: int = 0
    delta_bytes: int = 0
    delta_size_ratio: float | None = None
    aborted_transactions: int = 0
    aborted_directories: int = 0
    obsolete_directories: int = 0
    obsolete_bytes: int = 0
    evaluated_ms: int | None = None
    directory_count: int = 0
    directories: tuple[DirectoryHealth, ...] = ()


def partition_health(
    metastore: str,
    entity: Entity,
    directory: AcidDirectory,
    decision: CompactionDecision,
    hindrance: str | None,
    evaluated_ms: int,
) -> PartitionHealth:
    """A partition that was looked at.

    :param hindrance: why it is not asked for although it is due; None where it is, or is not due.
    """
    leftover = {*directory.obsolete, *directory.aborted}
    return PartitionHealth(
        metastore=metastore,
        entity=entity,
        state=HealthState.HELD if hindrance else _state(decision.type),
        reason=hindrance or decision.reason,
        deltas=decision.delta_count,
        delete_deltas=decision.delete_delta_count,
        base_bytes=decision.base_bytes,
        delta_bytes=decision.delta_bytes,
        delta_size_ratio=decision.delta_size_ratio,
        aborted_transactions=decision.aborted_transactions,
        aborted_directories=len(directory.aborted),
        obsolete_directories=decision.obsolete_directories,
        obsolete_bytes=sum(each.size_bytes for each in directory.directories if each.path in leftover),
        evaluated_ms=evaluated_ms,
        directory_count=len(directory.directories),
        directories=tuple(_directories(directory))[:MAX_DIRECTORIES],
    )


def held(metastore: str, entity: Entity, reason: str) -> PartitionHealth:
    """A partition that was not looked at."""
    return PartitionHealth(metastore, entity, HealthState.HELD, reason)


def _state(due: CompactionType | None) -> HealthState:
    if due is None:
        return HealthState.HEALTHY
    return HealthState.DUE_MAJOR if due is CompactionType.MAJOR else HealthState.DUE_MINOR


def _directories(directory: AcidDirectory) -> Iterator[DirectoryHealth]:
    states = {each.path: DirectoryState.CURRENT for each in directory.current}
    states |= dict.fromkeys(directory.obsolete, DirectoryState.OBSOLETE)
    states |= dict.fromkeys(directory.aborted, DirectoryState.ABORTED)
    states |= dict.fromkeys(directory.invisible, DirectoryState.INVISIBLE)
    described = [_directory(each, states.get(each.path, DirectoryState.UNCOMMITTED)) for each in directory.directories]
    yield from sorted(described, key=lambda each: (each.max_write_id, each.min_write_id, each.path))


def _directory(directory: BaseDirectory | DeltaDirectory, state: DirectoryState) -> DirectoryHealth:
    if isinstance(directory, BaseDirectory):
        kind, first, last, compacted = "base", 0, directory.write_id, directory.compacted
    else:
        name = directory.name
        kind, first, last = ("delete_delta" if name.is_delete else "delta"), name.min_write_id, name.max_write_id
        compacted = name.visibility_txn_id > 0 or first < last
    return DirectoryHealth(
        directory.path, kind, first, last, directory.size_bytes, len(directory.files), state, compacted
    )
