from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.metastore.values import (
    CompactionRow,
    CompactionState,
    LockInfo,
    LocksByPlace,
    LockState,
    OpenTxns,
    TableInfo,
    TxnState,
)

TABLE = TableInfo("Sales", "Orders", "file:/w", (), (), {}, -1, (), "MANAGED_TABLE", "", "hive")


@pytest.mark.parametrize(
    ("text", "state", "is_terminal"),
    [
        ("initiated", CompactionState.INITIATED, False),
        ("working", CompactionState.WORKING, False),
        ("ready for cleaning", CompactionState.READY_FOR_CLEANING, False),
        ("succeeded", CompactionState.SUCCEEDED, True),
        ("failed", CompactionState.FAILED, True),
        ("attempted", CompactionState.DID_NOT_INITIATE, True),
        ("did not initiate", CompactionState.DID_NOT_INITIATE, True),
        ("refused", CompactionState.REFUSED, True),
        ("aborted", CompactionState.ABORTED, True),
        ("of a later Hive", CompactionState.UNKNOWN, False),
    ],
)
def test_hives_words_for_states(text: str, state: CompactionState, is_terminal: bool) -> None:
    assert CompactionState.from_show_text(text) is state
    assert state.is_terminal is is_terminal


@pytest.mark.parametrize(
    ("parameters", "table_type", "kind"),
    [
        ({}, "MANAGED_TABLE", (False, False, False)),
        ({"transactional": "true"}, "MANAGED_TABLE", (True, False, False)),
        ({"TRANSACTIONAL": "TRUE"}, "MANAGED_TABLE", (True, False, False)),
        ({"transactional": "true", "transactional_properties": "default"}, "MANAGED_TABLE", (True, False, False)),
        ({"transactional": "true", "transactional_properties": "insert_only"}, "MANAGED_TABLE", (True, True, False)),
        ({"transactional_properties": "insert_only"}, "MANAGED_TABLE", (False, False, False)),
        ({"EXTERNAL": "TRUE"}, "EXTERNAL_TABLE", (False, False, True)),
        ({"EXTERNAL": "TRUE"}, "MANAGED_TABLE", (False, False, True)),
    ],
)
def test_the_kind_of_a_table(parameters: dict[str, str], table_type: str, kind: tuple[bool, bool, bool]) -> None:
    table = replace(TABLE, parameters=parameters, table_type=table_type)
    assert (table.is_transactional, table.is_insert_only, table.is_external) == kind


def test_a_tables_full_name_is_lower_case() -> None:
    assert TABLE.full_table_name == "sales.orders"


def test_the_state_of_a_transaction() -> None:
    txns = OpenTxns(high_water_mark=9, open=(3, 5), aborted=(4,), min_open=3)
    assert [txns.state_of(txn) for txn in (3, 4, 6, 99)] == [
        TxnState.OPEN,
        TxnState.ABORTED,
        TxnState.COMMITTED_OR_UNKNOWN,
        TxnState.COMMITTED_OR_UNKNOWN,
    ]


@pytest.mark.parametrize(
    ("state", "start_ms", "txn_id", "is_removal"),
    [
        (CompactionState.READY_FOR_CLEANING, None, 7, True),
        (CompactionState.READY_FOR_CLEANING, None, None, True),
        (CompactionState.SUCCEEDED, None, 7, True),
        (CompactionState.FAILED, None, 7, True),
        (CompactionState.READY_FOR_CLEANING, 1, 7, False),
        (CompactionState.SUCCEEDED, 1, 7, False),
        (CompactionState.WORKING, 1, None, False),
        (CompactionState.INITIATED, None, None, False),
        (CompactionState.INITIATED, None, 7, False),
        (CompactionState.DID_NOT_INITIATE, None, None, False),
        (CompactionState.ABORTED, None, None, False),
    ],
)
def test_a_row_that_is_finished_without_a_worker_is_no_compaction(
    state: CompactionState, start_ms: int | None, txn_id: int | None, is_removal: bool
) -> None:
    row = CompactionRow(1, Entity("d", "t"), "major", state, start_ms=start_ms, txn_id=txn_id)
    assert row.is_removal is is_removal


PLACES = (
    Entity("d", "t"),
    Entity("d", "u"),
    Entity("e", "t"),
    Entity("d.t", "u"),
    Entity("d", "t.u"),
    *(Entity("d", "t", name) for name in ("p=a", "p=A", "p=A%2FB", "p=a%2fb", "p=a%252Fb", "p=\u03c3", "p=\u03a3")),
    Entity("d", "u", "p=a"),
)


def lock_on(id: int, database: str, entity: Entity | None) -> LockInfo:
    return LockInfo(id, database, entity, LockState.ACQUIRED, "SHARED_READ", None, "eve", "there", 1, 1, None)


def test_locks_are_found_by_what_they_are_on_as_by_looking_at_each() -> None:
    locks = [lock_on(id, "d", place) for id, place in enumerate((*PLACES, *reversed(PLACES)))]
    locks += [lock_on(100, "D", None), lock_on(101, "e", None), lock_on(102, "d.t", None), locks[0]]
    found = LocksByPlace(locks)
    for entity in PLACES:
        assert found.touching(entity) == [lock for lock in locks if lock.touches(entity)], entity
    assert LocksByPlace(()).touching(PLACES[0]) == []
