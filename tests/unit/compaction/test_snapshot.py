"""A snapshot whose looks go in the one order that is safe: whatever happens between two of them counts as open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.hive import HIVE_4
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.write_ids import TableWriteIds, ValidTxnList
from airflow_provider_acid.compaction.snapshot import Snapshot, TransactionView, take_snapshot
from airflow_provider_acid.metastore.values import OpenTxns
from airflow_provider_acid.storages.local import LocalStorage

OWN_TXN = 9
WRITER, WRITTEN = 8, "delta_0000002_0000002_0000"
RIVAL, RIVALS_BASE = 7, "base_0000001_v0000007"
MOMENTS = ("transactions", "write ids", "listing", "the end")


class Table(LocalStorage):
    """A table with one row, a writer and another compaction, which end at some moment: right before a look.

    :param moment: before which look.
    """

    def __init__(self, folder: Path, moment: str) -> None:
        super().__init__(str(folder))
        self.folder = folder
        self.moment = moment
        self.open: tuple[int, ...] = (RIVAL, WRITER, OWN_TXN)
        self.asked_for: list[ValidTxnList] = []
        self.put("delta_0000001_0000001_0000")
        self.put(RIVALS_BASE)

    def put(self, name: str) -> None:
        (self.folder / name).mkdir()
        (self.folder / name / "bucket_00000").touch()

    def pass_by(self, look: str) -> None:
        if look == self.moment and self.open != (OWN_TXN,):
            self.put(WRITTEN)
            self.open = (OWN_TXN,)

    def open_transactions(self) -> OpenTxns:
        self.pass_by("transactions")
        return OpenTxns(OWN_TXN, self.open, (), min(self.open))

    def valid_write_ids(self, names: Sequence[str], txns: str) -> list[TableWriteIds]:
        self.pass_by("write ids")
        self.asked_for.append(ValidTxnList.parse(txns))
        is_open = not self.asked_for[-1].is_txn_valid(WRITER)
        return [TableWriteIds(names[0], 2, frozenset({2} if is_open else ()))]

    def list(self, path: str = "", into: Callable[[str], bool] | None = None) -> Listing:
        self.pass_by("listing")
        return super().list(path, into)


@pytest.fixture
def look(tmp_path: Path) -> Callable[[str], tuple[Snapshot, Table]]:
    def take(moment: str) -> tuple[Snapshot, Table]:
        table = Table(tmp_path, moment)
        return take_snapshot(TransactionView(cast(Any, table), OWN_TXN), "db.t", table, HIVE_4), table

    return take


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_write_id_that_counts_has_its_directory(look: Callable[[str], tuple[Snapshot, Table]], moment: str) -> None:
    """Without it a base would be named after the write id, and hide the row."""
    snapshot, _ = look(moment)
    is_there = WRITTEN in [directory.path for directory in snapshot.directory.current]
    assert snapshot.write_ids.is_write_id_valid(2) is is_there
    assert is_there is (moment == "transactions"), "what commits later is not seen"


@pytest.mark.parametrize("moment", MOMENTS)
def test_one_look_at_the_transactions_decides_about_rows_and_compactions(
    look: Callable[[str], tuple[Snapshot, Table]], moment: str
) -> None:
    snapshot, table = look(moment)
    assert table.asked_for == [snapshot.txns]
    base = snapshot.directory.base
    assert (base is not None and base.path == RIVALS_BASE) is snapshot.txns.is_txn_valid(RIVAL)


class CleanedTable(Table):
    """Its cleaner deletes what an aborted write left, and has the metastore forget it, at once right before a look."""

    aborted = frozenset({2})

    def __init__(self, folder: Path, moment: str) -> None:
        super().__init__(folder, moment)
        self.open = (OWN_TXN,)
        self.put(WRITTEN)

    def pass_by(self, look: str) -> None:
        if look == self.moment:
            self.delete([WRITTEN])
            self.aborted = frozenset()

    def valid_write_ids(self, names: Sequence[str], txns: str) -> list[TableWriteIds]:
        self.pass_by("write ids")
        return [TableWriteIds(names[0], 2, aborted=self.aborted)]


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_aborted_write_that_is_forgotten_meanwhile_does_not_count_as_committed(tmp_path: Path, moment: str) -> None:
    table = CleanedTable(tmp_path, moment)
    snapshot = take_snapshot(TransactionView(cast(Any, table), OWN_TXN), "db.t", table, HIVE_4)
    assert WRITTEN not in [directory.path for directory in snapshot.directory.current]


def test_what_begins_after_the_compaction_is_not_seen_whatever_becomes_of_it() -> None:
    later = ValidTxnList(12, (OWN_TXN, 11), (10,)).as_of(OWN_TXN)
    assert [txn for txn in range(10, 14) if later.is_txn_valid(txn)] == []


FIRST_TXN = 5
"""The oldest of several compactions that look together, older than the rival."""


class RivalsTable(Table):
    """A rival compacted it after the first of a group had begun, and what it merged is deleted already."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "never")
        self.open = (FIRST_TXN, OWN_TXN)
        self.delete(["delta_0000001_0000001_0000"])
        self.put(WRITTEN)

    def valid_write_ids(self, names: Sequence[str], txns: str) -> list[TableWriteIds]:
        self.asked_for.append(ValidTxnList.parse(txns))
        return [TableWriteIds(names[0], 2)]


def test_a_compaction_between_the_begin_of_a_group_and_the_own_one_is_seen(tmp_path: Path) -> None:
    """Without it a base would be made of the rest, and hide what the rival merged."""
    table = RivalsTable(tmp_path)
    view = TransactionView(cast(Any, table), FIRST_TXN)
    snapshot = take_snapshot(view, "db.t", table, HIVE_4, own_txn_id=OWN_TXN)
    assert [part.path for part in snapshot.directory.current] == [RIVALS_BASE, WRITTEN]
    assert [txns.high_water_mark for txns in table.asked_for] == [FIRST_TXN, OWN_TXN]


def test_a_group_without_such_a_compaction_looks_once(tmp_path: Path) -> None:
    table = RivalsTable(tmp_path)
    table.delete([RIVALS_BASE])
    view = TransactionView(cast(Any, table), FIRST_TXN)
    snapshot = take_snapshot(view, "db.t", table, HIVE_4, own_txn_id=OWN_TXN)
    assert [part.path for part in snapshot.directory.current] == [WRITTEN]
    assert [txns.high_water_mark for txns in table.asked_for] == [FIRST_TXN]
