"""What housekeeping reports: who holds everybody back, what fails again and again, what nobody serves."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.failures import failures_in_a_row
from airflow_provider_acid.compaction.housekeep.report import (
    Chore,
    Deed,
    HousekeepingReport,
    Stuck,
    StuckKind,
)
from airflow_provider_acid.compaction.housekeep.stuck import oldest_transaction, repeated_failures, unserved_requests
from airflow_provider_acid.compaction.recover.recovered_partition import DIED
from airflow_provider_acid.compaction.text_table import LINES
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState, TxnInfo, TxnState

ENTITY = Entity("sales", "orders", "p=1")
NOW_MS = 100_000_000
S, F, R, A = (
    CompactionState.SUCCEEDED,
    CompactionState.FAILED,
    CompactionState.REFUSED,
    CompactionState.DID_NOT_INITIATE,
)


def row(id: int, state: CompactionState, **values: object) -> CompactionRow:
    return replace(CompactionRow(id, ENTITY, "major", state), **values)  # type: ignore[arg-type]


def txn(id: int, state: TxnState, started_ms: int | None) -> TxnInfo:
    return TxnInfo(id, state, "eve", "there", None, started_ms, NOW_MS)


@pytest.mark.parametrize(
    ("states", "failures"),
    [((), 0), ((F,), 1), ((F, F), 2), ((F, F, S), 0), ((S, F, F, F), 3), ((F, A, F), 2), ((F, R, F), 2), ((S, R), 0)],
)
def test_failures_count_since_the_last_success_as_in_hive(states: tuple[CompactionState, ...], failures: int) -> None:
    rows = [row(id, state) for id, state in enumerate(states)]
    assert failures_in_a_row(reversed(rows), count_deaths=True) == failures


def test_a_result_that_waits_to_be_cleaned_is_a_success() -> None:
    """With keep_replaced_hours it waits for days, and the partition may be due again."""
    waiting = row(3, CompactionState.READY_FOR_CLEANING, commit_ms=NOW_MS)
    assert failures_in_a_row([row(1, F), row(2, F), waiting], count_deaths=True) == 0
    assert failures_in_a_row([row(1, F), row(2, F), replace(waiting, commit_ms=None)], count_deaths=True) == 2


def test_deaths_count_only_where_they_are_to() -> None:
    rows = [row(1, F, error_message="no disk"), row(2, F, error_message=f"{DIED} and another took over")]
    assert failures_in_a_row(rows, count_deaths=True) == 2
    assert failures_in_a_row(rows, count_deaths=False) == 1


def test_the_oldest_open_transaction_is_named_with_owner_and_age() -> None:
    found = oldest_transaction(
        [
            txn(3, TxnState.ABORTED, 1),
            txn(9, TxnState.OPEN, NOW_MS - 60_000),
            txn(7, TxnState.OPEN, NOW_MS - 7_200_000),
        ],
        NOW_MS,
    )
    assert list(found) == [Stuck(StuckKind.OPEN_TRANSACTION, "transaction 7", 7200.0, "of eve@there")]
    assert list(oldest_transaction([txn(3, TxnState.ABORTED, 1)], NOW_MS)) == []


def test_partitions_that_fail_again_and_again_are_named_with_the_last_message() -> None:
    failing = [row(1, F, error_message="no disk"), row(2, F, error_message="no memory")]
    (found,) = repeated_failures({ENTITY: failing, Entity("sales", "t"): [row(3, F)]})
    assert (found.kind, found.subject, found.message) == (
        StuckKind.FAILURES,
        "sales.orders/p=1",
        "2 times in a row, last: no memory",
    )


def test_requests_that_wait_for_too_long_or_nobody_knows_how_long_are_named() -> None:
    waiting = CompactionState.INITIATED
    rows = [
        row(1, waiting, enqueue_ms=NOW_MS - 11_000, pool="etl"),
        row(2, waiting, enqueue_ms=NOW_MS - 9_000),
        row(3, waiting),
        row(4, waiting, commit_ms=1),
        row(5, CompactionState.WORKING, enqueue_ms=1),
    ]
    found = list(unserved_requests(rows, NOW_MS, 10.0))
    assert [(item.message, item.age_seconds) for item in found] == [
        ("request 1 (major) of pool etl", 11.0),
        ("request 3 (major) of no pool", None),
    ]


REPORT = HousekeepingReport(
    deeds=(Deed(ENTITY, Chore.REMOVED, "_acid_compaction_1"), Deed(ENTITY, Chore.CLAIM_KEPT, "request 2")),
    stuck=(
        Stuck(StuckKind.OPEN_TRANSACTION, "transaction 7", 7290.0, "of eve@there"),
        Stuck(StuckKind.REQUEST, "sales.orders/p=1", None, "request 3"),
    ),
    to_clean=(ENTITY,),
)


def test_the_log_shows_two_small_tables() -> None:
    assert REPORT.lines() == [
        "done: 2",
        "  chore       partition         what",
        "  removed     sales.orders/p=1  _acid_compaction_1",
        "  claim kept  sales.orders/p=1  request 2",
        "stuck: 2",
        "  kind                     subject           age         what",
        "  oldest open transaction  transaction 7     2 h 02 min  of eve@there",
        "  request nobody serves    sales.orders/p=1  unknown     request 3",
    ]


def test_a_quiet_house_takes_two_lines() -> None:
    assert HousekeepingReport((), (), ()).lines() == ["done: nothing", "stuck: nothing"]


def test_many_lines_are_cut_with_their_number() -> None:
    lines = HousekeepingReport(tuple([REPORT.deeds[0]] * (LINES + 5)), (), ()).lines()
    assert lines[0] == f"done: {LINES + 5}"
    assert lines[-2] == "... and 5 more"
    assert len(lines) == LINES + 4


def test_the_xcom_is_small_and_plain_json() -> None:
    found = json.loads(json.dumps(replace(REPORT, stuck=REPORT.stuck * LINES).to_json()))
    assert found["done"] == {"removed": 1, "claim kept": 1}
    assert found["partitions"] == [{"database": "sales", "table": "orders", "partition": "p=1"}]
    assert len(found["stuck"]) == LINES
    assert found["stuck"][0] == {
        "kind": "oldest open transaction",
        "subject": "transaction 7",
        "age_seconds": 7290.0,
        "message": "of eve@there",
    }
