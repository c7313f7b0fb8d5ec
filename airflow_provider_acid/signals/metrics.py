"""Every metric of this package: its name, kind and meaning, and the name of Hive 4's metric that means the same.

Hive's names are those of ``MetricsConstants`` of its metastore. docs/observability.md shows this list as a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from airflow_provider_acid.compaction.housekeep.report import Chore, StuckKind
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.metastore.values import CompactionState

PREFIX = "hive_acid."
"""Before every name; Airflow puts its own before that (``airflow.``)."""


class Kind(str, Enum):
    """How values of a metric add up."""

    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True)
class Metric:
    """One metric.

    :param name: without :data:`PREFIX`.
    :param meaning: a clause, with the unit.
    :param hive_name: Hive 4's metric of the same meaning; None where it has none.
    """

    name: str
    kind: Kind
    meaning: str
    hive_name: str | None = None


def _gauge(name: str, meaning: str) -> Metric:
    return Metric(name, Kind.GAUGE, meaning)


def _counter(name: str, meaning: str) -> Metric:
    return Metric(name, Kind.COUNTER, meaning)


def _hives(name: str, kind: Kind, meaning: str) -> Metric:
    return Metric(name, kind, meaning, name)


EVALUATED = _gauge("evaluated_partitions", "partitions that the sensor's last look judged")
DUE = _gauge("due_partitions", "partitions that it found due, before `max_partitions`")
PASSED_OVER = _gauge("passed_over", "tables and partitions that it did not judge or ask for; the log says why")
NOT_SERVED = _gauge("requests_not_served", "requests of others that wait and are not served")
ACTIVE_DELTAS = _hives(
    "compaction_num_active_deltas", Kind.GAUGE, "deltas and delete deltas that readers open, all judged partitions"
)
SMALL_DELTAS = _hives(
    "compaction_num_small_deltas", Kind.GAUGE, "those of them with less than 1 % of their base's bytes"
)
OBSOLETE_DELTAS = _hives(
    "compaction_num_obsolete_deltas",
    Kind.GAUGE,
    "those that no reader opens any more, all judged partitions",
)
MOST_DELTAS = _gauge("most_active_deltas", "active deltas of the partition that has most")
DELTA_BYTES = _gauge("delta_bytes", "bytes of all active deltas")
BASE_BYTES = _gauge("base_bytes", "bytes of all bases, or of original files where there is none")
INITIATOR_CYCLE = _hives("compaction_initiator_cycle_duration", Kind.GAUGE, "milliseconds of the sensor's last look")
INITIATOR_FAILURES = _hives("compaction_initiator_failure_counter", Kind.COUNTER, "looks that failed as a whole")

OLDEST_ENQUEUE_AGE = _hives(
    "compaction_oldest_enqueue_age_in_sec", Kind.GAUGE, "age in seconds of the oldest request that nobody has claimed"
)
OLDEST_WORKING_AGE = _hives(
    "compaction_oldest_working_age_in_sec",
    Kind.GAUGE,
    "age in seconds of the oldest claim (Hive 3.1: its last sign)",
)
OLDEST_READY_AGE = _hives(
    "oldest_ready_for_cleaning_age_in_sec",
    Kind.GAUGE,
    "seconds since the oldest compaction could be cleaned that is not",
)
BY_STATE: Mapping[CompactionState, Metric] = {
    state: _hives(
        f"compaction_num_{state.value.replace(' ', '_')}",
        Kind.GAUGE,
        f"partitions whose newest request is '{state.value}'",
    )
    for state in CompactionState
    if state is not CompactionState.UNKNOWN
}

OUTCOMES: Mapping[OutcomeState, Metric] = {
    OutcomeState.COMPACTED: _counter("outcome_compacted", "partitions that were compacted"),
    OutcomeState.NOTHING_TO_MERGE: _counter("outcome_nothing_to_merge", "partitions with nothing to merge"),
    OutcomeState.SKIPPED: _counter("outcome_skipped", "partitions that somebody else was at, or had done or dropped"),
    OutcomeState.REFUSED: _counter("outcome_refused", "partitions that were refused"),
    OutcomeState.FAILED: _counter("outcome_failed", "partitions whose compaction failed"),
}
MERGED_BYTES = _counter("merged_input_bytes", "bytes of the files that were merged")
WRITTEN_BYTES = _counter("merged_output_bytes", "bytes of the files that took their place")
WRITTEN_ROWS = _counter("merged_output_rows", "rows in them")

CLEANED = _counter("cleaning_cleaned", "requests whose cleaning is complete")
KEPT = _counter("cleaning_kept", "requests that stay in the queue: kept for an undo, or cleaned but for the row")
DELETED = _counter("cleaning_deleted", "directories and files of partitions that were deleted")
CLEANER_CYCLE = _hives("compaction_cleaner_cycle_duration", Kind.GAUGE, "milliseconds of the last cleaning")
CLEANER_FAILURES = _hives("compaction_cleaner_failure_counter", Kind.COUNTER, "cleanings that failed")

CHORES: Mapping[Chore, Metric] = {
    Chore.SETTLED: _counter("housekeeping_settled", "requests of dead workers that were settled"),
    Chore.CLAIM_ENDED: _counter("housekeeping_claim_ended", "claims of dead workers that were ended"),
    Chore.CLAIM_KEPT: _counter("housekeeping_claim_kept", "waiting claims that were kept alive (Hive 3.1)"),
    Chore.REMOVED: _counter("housekeeping_removed", "partitions that left-over directories were removed from"),
    Chore.TWIN_REMOVED: _counter("housekeeping_twin_removed", "second results of a range that were removed"),
}
STUCK: Mapping[StuckKind, Metric] = {
    StuckKind.OPEN_TRANSACTION: _gauge("stuck_open_transaction", "1 while any transaction is open"),
    StuckKind.CLEANING: _gauge("stuck_cleaning", "1 while any cleaning waits"),
    StuckKind.FAILURES: _gauge("stuck_failures", "partitions whose last compactions all failed"),
    StuckKind.REQUEST: _gauge("stuck_request", "requests that nobody has claimed for long"),
    StuckKind.CLAIM: _gauge("stuck_claim", "silent claims that were not ended"),
    StuckKind.TWINS: _gauge("stuck_twins", "pairs of results of one range, whose rows readers see twice"),
    StuckKind.PROBLEM: _gauge("stuck_problem", "partitions that could not be looked after"),
}
OLDEST_OPEN_TXN_AGE = _gauge("oldest_open_txn_age_in_sec", "age in seconds of the oldest open transaction of any kind")

METRICS: tuple[Metric, ...] = (
    *(EVALUATED, DUE, PASSED_OVER, NOT_SERVED, ACTIVE_DELTAS, SMALL_DELTAS, OBSOLETE_DELTAS, MOST_DELTAS),
    *(DELTA_BYTES, BASE_BYTES, INITIATOR_CYCLE, INITIATOR_FAILURES),
    *BY_STATE.values(),
    *(OLDEST_ENQUEUE_AGE, OLDEST_WORKING_AGE, OLDEST_READY_AGE),
    *OUTCOMES.values(),
    *(MERGED_BYTES, WRITTEN_BYTES, WRITTEN_ROWS),
    *(CLEANED, KEPT, DELETED, CLEANER_CYCLE, CLEANER_FAILURES),
    *CHORES.values(),
    *STUCK.values(),
    OLDEST_OPEN_TXN_AGE,
)
"""All of them, in the order of the documentation's table."""
