"""What a stored row of Hive 3.1 means, and whether it is what its worker believes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import OwnershipLostError
from airflow_provider_acid.metastore.hive3.expected_row import as_expected
from airflow_provider_acid.metastore.hive3.row_notes import Published, RowNotes
from airflow_provider_acid.metastore.hive3.stored_rows import FIELDS, POOL_PROPERTY, StoredRow
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.values import CompactionState
from tests.harness.stringable_map_text import stringable_map_text

PUBLISHED = Published(next_txn_id=0, newest_lock_id=4, at_ms=5)


def row(state: str = "w", notes: RowNotes | None = None, end_ms: int | None = None, **values: Any) -> StoredRow:
    stored = {
        **dict.fromkeys(FIELDS),
        **{"ID": 1, "DATABASE": "d", "TABLE": "t", "PARTITION": "p=A", "STATE": state, "TYPE": "a"},
        "META_INFO": None if notes is None else notes.stored(),
        **values,
    }
    return StoredRow(stored, end_ms)


@pytest.mark.parametrize(
    ("stored", "state"),
    [
        (row("i"), CompactionState.INITIATED),
        (row("i", RowNotes(published=PUBLISHED)), CompactionState.INITIATED),
        (row("w"), CompactionState.WORKING),
        (row("w", RowNotes(txn_id=7)), CompactionState.WORKING),
        (row("w", RowNotes(published=PUBLISHED)), CompactionState.READY_FOR_CLEANING),
        (row("r"), CompactionState.READY_FOR_CLEANING),
        (row("s", RowNotes(published=PUBLISHED), 9), CompactionState.SUCCEEDED),
        (row("f", end_ms=9), CompactionState.FAILED),
        (row("a", RowNotes(refused=True), 9), CompactionState.REFUSED),
        (row("f", RowNotes(refused=True), 9), CompactionState.REFUSED),
        (row("a", end_ms=9), CompactionState.DID_NOT_INITIATE),
        (row("?"), CompactionState.UNKNOWN),
    ],
)
def test_states(stored: StoredRow, state: CompactionState) -> None:
    assert stored.row().state is state


def test_a_published_row_tells_who_may_still_read() -> None:
    found = row(notes=RowNotes("pool", 7, PUBLISHED), WORKER_ID="w", HIGHEST_WRITE_ID=3).row()
    assert (found.next_txn_id, found.newest_lock_id, found.commit_ms) == (0, 4, 5)
    assert (found.worker_id, found.txn_id, found.pool, found.highest_write_id) == (None, 7, "pool", 3)


@pytest.mark.parametrize("properties", [None, "", "nonsense", "1:1:a1:b"])
def test_a_row_that_names_no_pool_has_none(properties: str | None) -> None:
    assert row(TBLPROPERTIES=properties).row().pool is None


def test_the_pool_of_an_unclaimed_row_is_in_its_properties() -> None:
    assert row("i", TBLPROPERTIES=stringable_map_text({POOL_PROPERTY: "mine"})).row().pool == "mine"


def test_an_empty_partition_is_none() -> None:
    assert row(PARTITION="").entity == Entity("d", "t")


CLAIM = ClaimedCompaction(row(WORKER_ID="me").info(), "me", 7)


@pytest.mark.parametrize(
    ("now", "may_be_published", "is_mine"),
    [
        (row(WORKER_ID="me"), False, True),
        (row(WORKER_ID="me"), True, True),
        (row(WORKER_ID="me", notes=RowNotes(txn_id=7, published=PUBLISHED)), True, True),
        (row(WORKER_ID="me", notes=RowNotes(txn_id=7, published=PUBLISHED)), False, False),
        (row(WORKER_ID="me", notes=RowNotes(txn_id=8, published=PUBLISHED)), True, False),
        (row(WORKER_ID="other"), True, False),
        (row("i", WORKER_ID="me"), True, False),
        (row("r", WORKER_ID="me"), True, False),
        (row("f", WORKER_ID="me", end_ms=9), True, False),
        (row(WORKER_ID="me", PARTITION="p=a"), True, False),
        (None, True, False),
    ],
)
def test_a_claim_holds_while_the_row_is_its_workers(
    now: StoredRow | None, may_be_published: bool, is_mine: bool
) -> None:
    if is_mine:
        assert as_expected(CLAIM, now, may_be_published=may_be_published) is now
    else:
        with pytest.raises(OwnershipLostError):
            as_expected(CLAIM, now, may_be_published=may_be_published)


@pytest.mark.parametrize(
    "change",
    [
        {"state": CompactionState.INITIATED},
        {"worker_id": "other"},
        {"txn_id": 8},
        {"commit_ms": 6},
        {"entity": Entity("d", "t", "p=a")},
    ],
)
def test_a_row_holds_while_nothing_of_importance_changed(change: dict[str, Any]) -> None:
    now = row(WORKER_ID="me", START=1, notes=RowNotes(txn_id=7))
    seen = now.row()
    assert as_expected(replace(seen, start_ms=99), now) is now
    with pytest.raises(OwnershipLostError):
        as_expected(replace(seen, **change), now)
