"""The write ids of one table are asked for once where that tells the same, and again where it does not."""

from __future__ import annotations

from typing import cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.write_ids import TableWriteIds, cleaner_list, cleaner_txns
from airflow_provider_acid.compaction.clean.wait import Horizon
from airflow_provider_acid.compaction.clean.write_ids import WriteIdsOfMany
from airflow_provider_acid.exceptions import MetastoreError
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState

ABORTED = 12
HORIZON = Horizon(100, (ABORTED,))

WRITTEN_BY = {1: 5, 2: 30, 3: 8, 4: 12, 5: 9, 6: 40, 7: 31}
"""The transaction of each write id; the ids were not given out in the transactions' order."""


class Server:
    """Tells write ids as Hive does: up to the highest of a counted transaction, whoever the lower ones belong to."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def valid_write_ids(self, names: list[str], valid_txn_list: str) -> list[TableWriteIds]:
        self.asked.append(valid_txn_list)
        high_water_txn = int(valid_txn_list.partition(":")[0])
        mark = max((id for id, txn in WRITTEN_BY.items() if txn <= high_water_txn), default=0)
        open_ids = {id for id, txn in WRITTEN_BY.items() if id <= mark and txn > high_water_txn and txn != ABORTED}
        aborted = {id for id, txn in WRITTEN_BY.items() if id <= mark and txn == ABORTED}
        return [TableWriteIds(names[0], mark, frozenset(open_ids), frozenset(aborted))]


def row(own_txn: int, highest: int | None, table: str = "t") -> CompactionRow:
    entity = Entity("d", table, f"p={own_txn}")
    state = CompactionState.READY_FOR_CLEANING
    return CompactionRow(own_txn, entity, "major", state, txn_id=own_txn, highest_write_id=highest)


def many() -> tuple[Server, WriteIdsOfMany]:
    server = Server()
    return server, WriteIdsOfMany(cast(AcidMetastoreClient, server), HORIZON)


@pytest.mark.parametrize(
    ("rows", "times"),
    [
        ([row(10, 1), row(11, 1), row(99, 1)], 1),
        ([row(99, 7), row(99, 6), row(99, 1)], 1),
        ([row(10, 1), row(10, 1, "u")], 2),
        ([row(10, 1), row(32, 5)], 2),
        ([row(10, 1), row(50, 7)], 2),
        ([row(50, 1), row(10, 1)], 2),
        ([row(10, 1), row(32, 5), row(33, 5), row(11, 1)], 2),
    ],
    ids=["later", "lower", "another table", "open in between", "above the mark", "earlier", "both"],
)
def test_what_an_earlier_view_tells_is_not_asked_again(rows: list[CompactionRow], times: int) -> None:
    server, write_ids = many()
    for each in rows:
        write_ids.of(each)
    assert len(server.asked) == times


@pytest.mark.parametrize("first", range(5, 45))
def test_every_cleaning_sees_what_it_would_see_by_a_view_of_its_own(first: int) -> None:
    for later in range(first, 45):
        for highest in WRITTEN_BY:
            _, write_ids = many()
            write_ids.of(row(first, highest))
            one, alone = row(later, highest), many()[1]
            assert cleaner_list(write_ids.of(one), highest).is_range_valid(1, highest) == cleaner_list(
                alone.of(one), highest
            ).is_range_valid(1, highest)
            assert {id for id in write_ids.of(one).aborted if id <= highest} == {
                id for id in alone.of(one).aborted if id <= highest
            }
            assert write_ids.txns(one) == cleaner_txns(100, later, [ABORTED])


def test_a_row_without_a_high_water_mark_is_refused() -> None:
    with pytest.raises(MetastoreError, match="no highest write id was recorded"):
        many()[1].of(row(10, None))
