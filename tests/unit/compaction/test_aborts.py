"""How old an aborted write id is, without the metastore's database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from airflow_provider_acid.acid.directory import acid_directory
from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.acid.write_ids import TableWriteIds, ValidTxnList, compactor_list
from airflow_provider_acid.compaction.evaluate.aborts import AbortAges, aborted_write_ids
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import TxnInfo, TxnState
from airflow_provider_acid.plan.thresholds import AbortedFigures

NOW_MS = 100_000


class FakeClient(AcidMetastoreClient):
    """A metastore that knows one table's write ids by transaction, all of them aborted."""

    def __init__(self, txn_of_write_id: Mapping[int, int], started_ms: Mapping[int, int]) -> None:
        self.txn_of_write_id = txn_of_write_id
        self.started_ms = started_ms
        self.calls = 0

    def transactions(self) -> list[TxnInfo]:
        return [
            TxnInfo(txn, TxnState.ABORTED, "me", "here", None, self.started_ms[txn], None)
            for txn in sorted(self.started_ms)
        ]

    def server_now_ms(self) -> int:
        return NOW_MS

    def valid_write_ids(self, full_table_names: Sequence[str], valid_txn_list: str) -> list[TableWriteIds]:
        self.calls += 1
        high_water_mark = ValidTxnList.parse(valid_txn_list).high_water_mark
        seen = [write_id for write_id, txn in self.txn_of_write_id.items() if txn <= high_water_mark]
        mark = max(seen, default=0)
        later = {
            write_id for write_id, txn in self.txn_of_write_id.items() if write_id <= mark and txn > high_water_mark
        }
        return [TableWriteIds(full_table_names[0], mark, frozenset(later))]


@pytest.mark.parametrize(
    ("write_id", "age_seconds"),
    [(1, 90.0), (2, 40.0), (3, 60.0), (4, 10.0)],
    ids=["first", "given out before an older transaction's", "given out after a younger one's", "last"],
)
def test_the_age_is_that_of_the_transaction_that_got_the_write_id(write_id: int, age_seconds: float) -> None:
    # Transaction 9 asked for its write id before the older transaction 7 did.
    client = FakeClient({1: 5, 2: 9, 3: 7, 4: 11}, {5: 10_000, 7: 40_000, 9: 60_000, 11: 90_000})
    assert AbortAges(client).figures("d.t", frozenset({write_id})) == AbortedFigures(1, age_seconds)


def test_a_write_id_whose_transaction_is_forgotten_has_no_age() -> None:
    client = FakeClient({1: 5, 2: 12}, {5: 10_000})
    assert AbortAges(client).figures("d.t", frozenset({2})) == AbortedFigures(1, None)


def test_the_metastore_is_asked_only_where_something_was_aborted_and_only_once() -> None:
    client = FakeClient({1: 5}, {5: 10_000})
    ages = AbortAges(client)
    assert ages.figures("d.t", frozenset()) == AbortedFigures()
    assert client.calls == 0
    ages.figures("d.t", frozenset({1}))
    asked = client.calls
    ages.figures("d.t", frozenset({1}))
    assert client.calls == asked > 0


def test_write_ids_count_in_their_own_directories_and_among_others_but_not_in_what_a_compaction_wrote() -> None:
    names = ("delta_0000001_0000005_v0000009", "delta_0000006_0000006", "delta_0000007_0000009")
    listing = Listing(tuple(FileEntry(f"{name}/bucket_00000", 10) for name in names), names)
    write_ids = compactor_list(TableWriteIds("d.t", 9, frozenset(), frozenset({3, 6, 8})))
    directory = acid_directory(listing, write_ids, ValidTxnList(20, (), ()))
    assert aborted_write_ids(directory, write_ids) == {6, 8}
