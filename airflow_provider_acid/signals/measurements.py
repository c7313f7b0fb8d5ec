"""What an evaluation, outcomes, cleanings and housekeeping come to, as values of :mod:`metrics`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.evaluate.initiator import Evaluation
from airflow_provider_acid.compaction.evaluate.queue_figures import QueueFigures
from airflow_provider_acid.compaction.housekeep.report import HousekeepingReport, StuckKind
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.signals import metrics
from airflow_provider_acid.signals.metrics import Metric


@dataclass(frozen=True)
class Measurement:
    """A gauge's value, or what a counter grew by.

    Also a counter that did not grow is sent: Prometheus cannot tell the growth of one that it never saw before.
    """

    metric: Metric
    value: float


def of_evaluation(evaluation: Evaluation, seconds: float) -> tuple[Measurement, ...]:
    """One look of the sensor, and how the queue stands.

    :param seconds: how long the look took.
    """
    decisions = [item.decision for item in evaluation.evaluated]
    deltas = [decision.delta_count + decision.delete_delta_count for decision in decisions]
    return (
        Measurement(metrics.EVALUATED, len(decisions)),
        Measurement(metrics.DUE, len(evaluation.due)),
        Measurement(metrics.PASSED_OVER, len(evaluation.skipped)),
        Measurement(metrics.NOT_SERVED, len(evaluation.foreign)),
        Measurement(metrics.ACTIVE_DELTAS, sum(deltas)),
        Measurement(metrics.SMALL_DELTAS, sum(decision.small_deltas for decision in decisions)),
        Measurement(metrics.OBSOLETE_DELTAS, sum(decision.obsolete_deltas for decision in decisions)),
        Measurement(metrics.MOST_DELTAS, max(deltas, default=0)),
        Measurement(metrics.DELTA_BYTES, sum(decision.delta_bytes for decision in decisions)),
        Measurement(metrics.BASE_BYTES, sum(decision.base_bytes for decision in decisions)),
        Measurement(metrics.INITIATOR_CYCLE, round(seconds * 1000)),
        Measurement(metrics.INITIATOR_FAILURES, 0),
        *of_queue(evaluation.queue),
    )


def of_queue(queue: QueueFigures) -> tuple[Measurement, ...]:
    """How the queue stands."""
    return (
        *(Measurement(metric, queue.partitions_by_state.get(state, 0)) for state, metric in metrics.BY_STATE.items()),
        Measurement(metrics.OLDEST_ENQUEUE_AGE, queue.oldest_enqueue_seconds),
        Measurement(metrics.OLDEST_WORKING_AGE, queue.oldest_working_seconds),
        Measurement(metrics.OLDEST_READY_AGE, queue.oldest_ready_seconds),
    )


def of_outcomes(outcomes: Sequence[Outcome]) -> tuple[Measurement, ...]:
    """What came of the partitions of one task."""
    states = Counter(outcome.state for outcome in outcomes)
    compacted = [outcome for outcome in outcomes if outcome.state is OutcomeState.COMPACTED]
    return (
        *(Measurement(metric, states[state]) for state, metric in metrics.OUTCOMES.items()),
        Measurement(metrics.MERGED_BYTES, sum(outcome.bytes_before for outcome in compacted)),
        Measurement(metrics.WRITTEN_BYTES, sum(outcome.bytes_after for outcome in compacted)),
        Measurement(metrics.WRITTEN_ROWS, sum(outcome.rows for outcome in compacted)),
    )


def of_cleanings(cleanings: Sequence[Cleaning], seconds: float) -> tuple[Measurement, ...]:
    """What one cleaning came to.

    :param seconds: how long it took.
    """
    states = Counter(cleaning.state for cleaning in cleanings)
    return (
        Measurement(metrics.CLEANED, states[CleaningState.CLEANED]),
        Measurement(metrics.KEPT, states[CleaningState.KEPT]),
        Measurement(metrics.DELETED, sum(len(cleaning.deleted) for cleaning in cleanings)),
        Measurement(metrics.CLEANER_FAILURES, states[CleaningState.FAILED]),
        Measurement(metrics.CLEANER_CYCLE, round(seconds * 1000)),
    )


def of_housekeeping(report: HousekeepingReport) -> tuple[Measurement, ...]:
    """What one round of housekeeping did and found, and how the queue stands after it."""
    chores = Counter(deed.chore for deed in report.deeds)
    stuck = Counter(item.kind for item in report.stuck)
    oldest = [item.age_seconds or 0.0 for item in report.stuck if item.kind is StuckKind.OPEN_TRANSACTION]
    return (
        *(Measurement(metric, chores[chore]) for chore, metric in metrics.CHORES.items()),
        *(Measurement(metric, stuck[kind]) for kind, metric in metrics.STUCK.items()),
        Measurement(metrics.OLDEST_OPEN_TXN_AGE, max(oldest, default=0.0)),
        *of_queue(report.queue),
    )
