"""Figures of evaluations, outcomes, cleanings and housekeeping, each under its metric."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.evaluate.initiator import Evaluated, Evaluation
from airflow_provider_acid.compaction.evaluate.queue_figures import QueueFigures
from airflow_provider_acid.compaction.housekeep.report import Chore, Deed, HousekeepingReport, Stuck, StuckKind
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.thresholds import CompactionDecision
from airflow_provider_acid.signals import metrics
from airflow_provider_acid.signals.measurements import (
    Measurement,
    of_cleanings,
    of_evaluation,
    of_housekeeping,
    of_outcomes,
    of_queue,
)

ENTITY = Entity("d", "t", "p=1")
QUEUE = QueueFigures({CompactionState.FAILED: 2, CompactionState.READY_FOR_CLEANING: 1}, 5.0, 6.0, 7.0)


def by_name(measurements: Sequence[Measurement]) -> dict[str, float]:
    found = {item.metric.name: item.value for item in measurements}
    assert len(found) == len(measurements), "a metric is sent twice"
    return found


def decision(**figures: int) -> Evaluated:
    return Evaluated(ENTITY, CompactionDecision(None, "because", **figures))


def test_an_evaluation_gives_the_sums_of_all_partitions_and_the_worst() -> None:
    evaluation = Evaluation(
        due=(DuePartition(ENTITY, CompactionType.MAJOR, "because"),),
        evaluated=(
            decision(delta_count=3, delete_delta_count=2, small_deltas=4, obsolete_deltas=1, delta_bytes=10),
            decision(delta_count=1, small_deltas=1, obsolete_deltas=2, base_bytes=90, obsolete_directories=7),
        ),
        skipped=("one", "two"),
        queue=QUEUE,
    )
    found = by_name(of_evaluation(evaluation, 0.25))
    assert {name: found[name] for name in ("evaluated_partitions", "due_partitions", "passed_over")} == {
        "evaluated_partitions": 2,
        "due_partitions": 1,
        "passed_over": 2,
    }
    assert found["compaction_num_active_deltas"] == 6
    assert found["compaction_num_small_deltas"] == 5
    assert found["compaction_num_obsolete_deltas"] == 3
    assert (found["most_active_deltas"], found["delta_bytes"], found["base_bytes"]) == (5, 10, 90)
    assert found["compaction_initiator_cycle_duration"] == 250
    assert by_name(of_queue(QUEUE)).items() <= found.items()


def test_every_metric_is_sent_also_where_there_is_nothing_to_tell() -> None:
    of_nothing = [of_evaluation(Evaluation(), 0.0), of_outcomes([]), of_cleanings([], 0.0)]
    of_nothing.append(of_housekeeping(HousekeepingReport((), (), ())))
    assert {item.metric for measurements in of_nothing for item in measurements} == set(metrics.METRICS)
    assert {item.value for measurements in of_nothing for item in measurements} == {0}


def test_the_queue_is_told_by_hives_names() -> None:
    found = by_name(of_queue(QUEUE))
    assert found["compaction_num_ready_for_cleaning"] == 1
    assert found["compaction_num_failed"] == 2
    assert found["compaction_num_did_not_initiate"] == 0
    assert found["compaction_oldest_enqueue_age_in_sec"] == 5
    assert found["compaction_oldest_working_age_in_sec"] == 6
    assert found["oldest_ready_for_cleaning_age_in_sec"] == 7


def test_outcomes_are_counted_by_state_and_bytes_only_of_what_was_compacted() -> None:
    outcomes = [
        Outcome(ENTITY, OutcomeState.COMPACTED, "m", 1, ("base_1",), 100, 60, 7),
        Outcome(ENTITY, OutcomeState.COMPACTED, "m", 2, ("base_2",), 10, 6, 1),
        Outcome(ENTITY, OutcomeState.FAILED, "m", 3, (), 1000, 1000, 1000),
        Outcome(ENTITY, OutcomeState.SKIPPED, "m"),
    ]
    assert by_name(of_outcomes(outcomes)) == {
        "outcome_compacted": 2,
        "outcome_nothing_to_merge": 0,
        "outcome_refused": 0,
        "outcome_failed": 1,
        "outcome_skipped": 1,
        "merged_input_bytes": 110,
        "merged_output_bytes": 66,
        "merged_output_rows": 8,
    }


def test_every_state_of_an_outcome_has_a_counter() -> None:
    for state in OutcomeState:
        found = by_name(of_outcomes([Outcome(ENTITY, state, "m")]))
        assert {name: count for name, count in found.items() if count} == {f"outcome_{state.value}": 1}


def test_cleanings_count_what_was_deleted_whatever_became_of_the_row() -> None:
    cleanings = [
        Cleaning(ENTITY, 1, CleaningState.CLEANED, "m", ("a", "b")),
        Cleaning(ENTITY, 2, CleaningState.KEPT, "m", ("c",)),
        Cleaning(ENTITY, 3, CleaningState.FAILED, "m"),
        Cleaning(ENTITY, 4, CleaningState.WAITING, "m"),
    ]
    assert by_name(of_cleanings(cleanings, 1.5)) == {
        "cleaning_cleaned": 1,
        "cleaning_kept": 1,
        "cleaning_deleted": 3,
        "compaction_cleaner_failure_counter": 1,
        "compaction_cleaner_cycle_duration": 1500,
    }


def test_housekeeping_counts_its_deeds_and_shows_what_is_stuck() -> None:
    report = HousekeepingReport(
        (Deed(ENTITY, Chore.REMOVED, "m"), Deed(ENTITY, Chore.REMOVED, "m"), Deed(ENTITY, Chore.SETTLED, "m")),
        (
            Stuck(StuckKind.OPEN_TRANSACTION, "transaction 3", 90.0, "m"),
            Stuck(StuckKind.CLEANING, "d.t", 200.0, "m"),
            Stuck(StuckKind.PROBLEM, "d.t", None, "m"),
        ),
        (),
        QUEUE,
    )
    found = by_name(of_housekeeping(report))
    assert (found["housekeeping_removed"], found["housekeeping_settled"]) == (2, 1)
    assert (found["stuck_open_transaction"], found["stuck_cleaning"], found["stuck_problem"]) == (1, 1, 1)
    assert (found["stuck_claim"], found["oldest_open_txn_age_in_sec"]) == (0, 90)
    assert by_name(of_queue(QUEUE)).items() <= found.items()


def test_every_chore_and_every_kind_of_trouble_has_a_metric() -> None:
    assert metrics.CHORES.keys() == set(Chore)
    assert metrics.STUCK.keys() == set(StuckKind)
