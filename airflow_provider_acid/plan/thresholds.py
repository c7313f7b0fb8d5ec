"""Whether a partition is due, for which compaction, and why: the arithmetic of Hive's Initiator.

Rules: ``InitiatorBase.determineCompactionType``; the figures are compared as Java does it, as 32 bit floats.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from airflow_provider_acid.acid.directory import AcidDirectory
from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.plan.minor import needs_a_base, no_insert_only_minor
from airflow_provider_acid.plan.plan import CompactionType

DELTA_COUNT_PROPERTY = "compactorthreshold.hive.compactor.delta.num.threshold"
"""Table property that overrides :attr:`Thresholds.delta_num_threshold`."""

DELTA_SIZE_RATIO_PROPERTY = "compactorthreshold.hive.compactor.delta.pct.threshold"
"""Table property that overrides :attr:`Thresholds.delta_pct_threshold`."""

SMALL_DELTA_SHARE = 0.01
"""A delta with a smaller share of the base's bytes is small (``metastore.deltametrics.delta.pct.threshold``)."""

NO_AUTO_COMPACTION = "no_auto_compaction"
"""Property of a table, on Hive 4 also of a database, that keeps Hive's Initiator away; also in upper case."""

ENROLLED = "airflow_acid.auto_compaction"
"""Table property that enrols a table here although :data:`NO_AUTO_COMPACTION` is set."""


MAX_DIGITS = 6
"""Digits of a ratio in a reason, after the point."""


class TableKind(str, Enum):
    """What a transactional table may hold."""

    FULL_ACID = "full ACID"
    INSERT_ONLY = "insert-only"

    @classmethod
    def of(cls, table_parameters: Mapping[str, str]) -> TableKind | None:
        """The kind that the table's parameters say; None for a table that is not transactional."""
        if (_either_spelling(table_parameters, "transactional") or "").lower() != "true":
            return None
        properties = _either_spelling(table_parameters, "transactional_properties") or "default"
        return cls.INSERT_ONLY if properties.lower() == "insert_only" else cls.FULL_ACID


@dataclass(frozen=True)
class Thresholds:
    """When a partition is due; the defaults are Hive's.

    :param delta_num_threshold: more current directories than this (deltas and delete deltas together) are too many.
    :param delta_pct_threshold: bytes of deltas per byte of base, above which everything is rewritten.
    :param aborted_txn_threshold: more aborted transactions of the partition than this are too many.
    :param aborted_txn_time_threshold: one begun more seconds ago is too old (Hive 4); negative: never.
    """

    delta_num_threshold: int = 10
    delta_pct_threshold: float = 0.1
    aborted_txn_threshold: int = 1000
    aborted_txn_time_threshold: float = 43_200

    def for_table(self, table_parameters: Mapping[str, str]) -> Thresholds:
        """The thresholds with those that the table sets for itself.

        :raises ConfigurationError: a table property is no number.
        """
        own: dict[str, Any] = {}
        if (count := table_parameters.get(DELTA_COUNT_PROPERTY)) is not None:
            own["delta_num_threshold"] = int(_number(DELTA_COUNT_PROPERTY, count, whole=True))
        if (ratio := table_parameters.get(DELTA_SIZE_RATIO_PROPERTY)) is not None:
            own["delta_pct_threshold"] = _number(DELTA_SIZE_RATIO_PROPERTY, ratio)
        return replace(self, **own)


@dataclass(frozen=True)
class AbortedFigures:
    """Aborted transactions that wrote to one entity (not to its table's other partitions).

    :param oldest_age_seconds: time since the oldest of them began; None where there is none or it is not known.
    """

    count: int = 0
    oldest_age_seconds: float | None = None


NO_ABORTS = AbortedFigures()


@dataclass(frozen=True)
class CompactionDecision:
    """What the Initiator would do, with the figures it was decided by.

    :param type: None: nothing is due.
    :param reason: one sentence.
    :param delta_count: current deltas that hold rows.
    :param delete_delta_count: current deltas that hold delete events.
    :param base_bytes: bytes of the base, or of the original files where there is none.
    :param delta_size_ratio: delta bytes per base byte; None where there are no base bytes.
    :param obsolete_directories: leftovers that a Cleaner may remove once no reader needs them.
    :param obsolete_deltas: those among them that are deltas, of both kinds.
    :param small_deltas: current deltas, of both kinds, below :data:`SMALL_DELTA_SHARE` of the base; 0 without a base.
    """

    type: CompactionType | None
    reason: str
    delta_count: int = 0
    delete_delta_count: int = 0
    delta_bytes: int = 0
    base_bytes: int = 0
    delta_size_ratio: float | None = None
    obsolete_directories: int = 0
    aborted_transactions: int = 0
    oldest_abort_seconds: float | None = None
    obsolete_deltas: int = 0
    small_deltas: int = 0


def decide(
    directory: AcidDirectory,
    thresholds: Thresholds,
    hive: Hive,
    *,
    kind: TableKind = TableKind.FULL_ACID,
    aborted: AbortedFigures = NO_ABORTS,
) -> CompactionDecision:
    """Whether a compaction is due.

    :param directory: the partition as a compactor sees it.
    :param hive: whose Initiator is followed where they differ.
    """
    base_bytes, delta_bytes = directory.base_bytes, directory.delta_bytes
    chosen, reason = _too_many_aborts(thresholds, aborted, hive) or _by_size(
        directory, base_bytes, delta_bytes, thresholds, hive, kind
    )
    delete_delta_count = len(directory.delete_deltas)
    return CompactionDecision(
        type=chosen,
        reason=f"{chosen.value if chosen else 'not due'}: {reason}",
        delta_count=len(directory.deltas) - delete_delta_count,
        delete_delta_count=delete_delta_count,
        delta_bytes=delta_bytes,
        base_bytes=base_bytes,
        delta_size_ratio=delta_bytes / base_bytes if base_bytes else None,
        obsolete_directories=len(directory.obsolete),
        aborted_transactions=aborted.count,
        oldest_abort_seconds=aborted.oldest_age_seconds,
        obsolete_deltas=sum([path.startswith(("delta_", "delete_delta_")) for path in directory.obsolete]),
        small_deltas=_small_deltas(directory, base_bytes),
    )


def _small_deltas(directory: AcidDirectory, base_bytes: int) -> int:
    limit_bytes = SMALL_DELTA_SHARE * base_bytes
    return sum([delta.size_bytes < limit_bytes for delta in directory.deltas]) if base_bytes else 0


def demanded(decision: CompactionDecision, type: CompactionType) -> CompactionDecision:
    """The decision where somebody asks for a compaction of this type, whatever the thresholds say of it."""
    return replace(decision, type=type, reason=f"{type.value}: asked for ({decision.reason})")


def _too_many_aborts(thresholds: Thresholds, aborted: AbortedFigures, hive: Hive) -> tuple[CompactionType, str] | None:
    if aborted.count > thresholds.aborted_txn_threshold:
        return CompactionType.MAJOR, f"{aborted.count} aborted transactions > {thresholds.aborted_txn_threshold}"
    age, limit = aborted.oldest_age_seconds, thresholds.aborted_txn_time_threshold
    if hive.counts_age_of_aborts and aborted.count and age is not None and 0 <= limit < age:
        return CompactionType.MINOR, f"oldest aborted transaction is {age:.0f} s old > {limit:.0f} s"
    return None


def _by_size(
    directory: AcidDirectory,
    base_bytes: int,
    delta_bytes: int,
    thresholds: Thresholds,
    hive: Hive,
    kind: TableKind,
) -> tuple[CompactionType | None, str]:
    has_base = base_bytes > 0 or delta_bytes == 0
    ratio_text = "no base"
    if has_base:
        ratio, limit = _java_ratio(delta_bytes, base_bytes), _float32(thresholds.delta_pct_threshold)
        ratio_text = f"ratio {_compared(ratio, limit)}" if base_bytes else "no data"
        if ratio > limit:
            return CompactionType.MAJOR, ratio_text
        if hive.counts_obsolete_bases and delta_bytes == 0 and _has_obsolete_base(directory):
            return CompactionType.MAJOR, "an obsolete base waits to be cleaned"
    count, limit_count = len(directory.deltas), thresholds.delta_num_threshold
    if count <= limit_count:
        return None, f"{count} deltas ≤ {limit_count}; {ratio_text}"
    reason = f"{count} deltas > {limit_count}; {ratio_text}"
    obstacle = None if not has_base else _minor_obstacle(directory, hive, kind)
    if not has_base or obstacle:
        return CompactionType.MAJOR, f"{reason}; {obstacle}" if obstacle else reason
    return CompactionType.MINOR, reason


def _compared(value: float, limit: float) -> str:
    """Both with as many digits as it takes to see that they differ, where they do."""
    digits = 2
    while value != limit and digits < MAX_DIGITS and f"{value:.{digits}f}" == f"{limit:.{digits}f}":
        digits += 1
    return f"{value:.{digits}f} {'>' if value > limit else '≤'} {limit:.{digits}f}"


def _minor_obstacle(directory: AcidDirectory, hive: Hive, kind: TableKind) -> str | None:
    if kind is TableKind.INSERT_ONLY:
        return no_insert_only_minor(hive)
    return needs_a_base(directory) if hive.initiator_asks_for_needed_bases else None


def _has_obsolete_base(directory: AcidDirectory) -> bool:
    return any(path.startswith("base_") for path in directory.obsolete)


def _java_ratio(delta_bytes: int, base_bytes: int) -> float:
    if base_bytes == 0:
        return math.nan if delta_bytes == 0 else math.inf
    return _float32(_float32(delta_bytes) / _float32(base_bytes))


def _float32(value: float) -> float:
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def _number(name: str, text: str, *, whole: bool = False) -> float:
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigurationError(
            f"table property {name}={text!r}", f"is not a {'whole ' if whole else ''}number", "correct it or remove it"
        )
    return value


@dataclass(frozen=True)
class AutoCompaction:
    """Whether a table may be compacted without being asked for by a user, and what decided it."""

    allowed: bool
    reason: str


def auto_compaction(
    table_parameters: Mapping[str, str],
    database_parameters: Mapping[str, str],
    *,
    listed_explicitly: bool,
    override: bool,
    hive: Hive,
) -> AutoCompaction:
    """Whether ``no_auto_compaction`` keeps this package away from a table.

    :param listed_explicitly: the table is on the sensor's include list, by its name.
    :param override: the sensor's ``override_no_auto_compaction``.
    :param hive: says whether the database's property counts, and then before the table's.
    """
    forbidding = _forbidding(table_parameters, database_parameters if hive.heeds_database_properties else {})
    if forbidding is None:
        return AutoCompaction(True, f"{NO_AUTO_COMPACTION} is not in force")
    if (table_parameters.get(ENROLLED) or "").lower() == "true":
        return AutoCompaction(True, f"{forbidding}, but table property {ENROLLED}=true enrols it")
    if listed_explicitly and override:
        return AutoCompaction(True, f"{forbidding}, but it is on the include list with override_no_auto_compaction")
    return AutoCompaction(False, forbidding)


def _forbidding(table_parameters: Mapping[str, str], database_parameters: Mapping[str, str]) -> str | None:
    for owner, parameters in (("database", database_parameters), ("table", table_parameters)):
        value = _either_spelling(parameters, NO_AUTO_COMPACTION)
        if value is not None:
            return f"{owner} property {NO_AUTO_COMPACTION}=true" if value.lower() == "true" else None
    return None


def _either_spelling(parameters: Mapping[str, str], name: str) -> str | None:
    value = parameters.get(name)
    return parameters.get(name.upper()) if value is None else value
