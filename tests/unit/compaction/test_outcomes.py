from __future__ import annotations

import json

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState, check_metastore
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.plan.plan import CompactionType


@pytest.mark.parametrize(
    "due",
    [
        DuePartition(Entity("db", "t"), CompactionType.MAJOR, "because"),
        DuePartition(Entity("db", "t", "p=a%2Fb/q=1"), CompactionType.MINOR, "asked", 17),
        DuePartition(Entity("db", "t"), CompactionType.MINOR, "12 deltas", None, "nightly", was_seen=True),
        DuePartition(Entity("db", "t"), CompactionType.MINOR, "12 deltas", was_seen=True, metastore_id="51d5"),
    ],
)
def test_a_due_partition_survives_its_xcom(due: DuePartition) -> None:
    assert DuePartition.from_json(json.loads(json.dumps(due.to_json()))) == due


def test_what_a_person_leaves_out_is_a_major_compaction_that_was_asked_for() -> None:
    assert DuePartition.from_json({"database": "db", "table": "t"}) == DuePartition(
        Entity("db", "t"), CompactionType.MAJOR, "asked for"
    )


@pytest.mark.parametrize(
    "data", [{}, {"database": "db"}, {"database": 1, "table": "t"}, {"database": "db", "table": "t", "request_id": "x"}]
)
def test_what_is_no_due_partition_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        DuePartition.from_json(data)


def test_an_unknown_type_is_refused_as_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="rebalance"):
        DuePartition.from_json({"database": "db", "table": "t", "type": "rebalance"})


@pytest.mark.parametrize("found_in", [(), (None,), (None, "one"), ("one", "one")])
@pytest.mark.parametrize("own", [None, "one"])
def test_what_was_found_in_the_same_metastore_or_in_none_that_is_known_is_compacted(
    found_in: tuple[str | None, ...], own: str | None
) -> None:
    check_metastore(map(found, found_in), own)
    check_metastore([found("other")], None)


def test_what_was_found_in_another_metastore_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"db.t: was found due in another metastore .* id two\) .* \(one\)"):
        check_metastore(map(found, (None, "one", "two")), "one")


def found(metastore_id: str | None) -> DuePartition:
    return DuePartition(Entity("db", "t"), CompactionType.MAJOR, "12 deltas", was_seen=True, metastore_id=metastore_id)


@pytest.mark.parametrize(
    ("state", "is_failure"),
    [
        (OutcomeState.COMPACTED, False),
        (OutcomeState.NOTHING_TO_MERGE, False),
        (OutcomeState.SKIPPED, False),
        (OutcomeState.REFUSED, True),
        (OutcomeState.FAILED, True),
    ],
)
def test_a_task_fails_for_refused_and_failed_partitions_only(state: OutcomeState, is_failure: bool) -> None:
    assert state.is_failure is is_failure


def test_an_outcome_is_plain_json() -> None:
    outcome = Outcome(Entity("db", "t", "p=1"), OutcomeState.COMPACTED, "done", 3, ("base_1_v2",), 100, 50, 7, 1.5)
    assert json.loads(json.dumps(outcome.to_json())) == {
        "database": "db",
        "table": "t",
        "partition": "p=1",
        "state": "compacted",
        "message": "done",
        "request_id": 3,
        "targets": ["base_1_v2"],
        "bytes_before": 100,
        "bytes_after": 50,
        "rows": 7,
        "seconds": 1.5,
    }


def test_a_cleaning_counts_what_it_deleted() -> None:
    cleaning = Cleaning(Entity("db", "t"), 3, CleaningState.CLEANED, "2 deleted", ("a", "b"))
    assert json.loads(json.dumps(cleaning.to_json())) == {
        "database": "db",
        "table": "t",
        "partition": None,
        "request_id": 3,
        "state": "cleaned",
        "message": "2 deleted",
        "deleted": 2,
    }
