"""What aborted compactions left is looked for at the transactions only where a partition may have such a thing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.publish.staging import staging_name
from airflow_provider_acid.compaction.recover.attempts import nobodys_pool
from airflow_provider_acid.compaction.recover.dead_results import CommittedResults
from airflow_provider_acid.compaction.recover.recovered_partition import RecoveredPartition
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.metastore.values import OpenTxns, TxnState
from airflow_provider_acid.storages.local import LocalStorage

TABLE = Entity("db", "t")
OPEN, ABORTED, NEWEST = 7, 8, 9


class Client:
    """Transactions up to the newest are committed but for two; counts how often it is asked for all."""

    def __init__(self) -> None:
        self.looks = 0

    def open_transactions(self) -> OpenTxns:
        self.looks += 1
        return OpenTxns(NEWEST, (OPEN,), (ABORTED,), OPEN)

    def transaction_state(self, txn_id: int) -> TxnState:
        return OpenTxns(NEWEST, (OPEN,), (ABORTED,), OPEN).state_of(txn_id)

    def transactions(self) -> list[Any]:
        return []

    def server_now_ms(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("directories", "looks"),
    [
        (["base_0000001", "delta_0000002_0000002_0000", "delete_delta_0000002_0000002_0001"], 0),
        (["base_0000001_v0000005", "delta_0000002_0000002_0000"], 1),
        (["delta_0000001_0000002_v0000005", "delete_delta_0000001_0000002_v0000006"], 1),
        ([f"delta_0000001_0000002_v{OPEN:07d}"], 3),
        ([f"base_0000001_v{NEWEST + 1:07d}"], 3),
        ([staging_name("0123456789abcdef"), "delta_0000002_0000002_0000"], 3),
    ],
    ids=["nothing is compacted", "a base", "a pair", "its transaction is open", "it is newer", "something is staged"],
)
def test_what_was_committed_at_one_look_is_for_good(tmp_path: Path, directories: list[str], looks: int) -> None:
    client = Client()
    results = CommittedResults(cast(Any, client), cast(Any, None), CompactionSettings(transaction_timeout_seconds=300))
    for number in range(3):
        for name in directories:
            (tmp_path / f"p={number}" / name).mkdir(parents=True)
        assert results.withdraw_aborted(partition_at(tmp_path / f"p={number}")) is None
        assert results.may_hold_uncommitted(partition_at(tmp_path / f"p={number}").storage.list()) is (looks > 1)
    assert client.looks == looks


def test_the_base_of_an_aborted_compaction_goes_also_after_a_look_that_knew_of_it(tmp_path: Path) -> None:
    settings = CompactionSettings(transaction_timeout_seconds=300, readers_honour_visibility=True)
    results = CommittedResults(cast(Any, Client()), cast(Any, None), settings)
    for number in range(2):
        place = tmp_path / f"p={number}"
        (place / f"base_0000001_v{ABORTED:07d}").mkdir(parents=True)
        (place / "delta_0000001_0000001_0000").mkdir()
        assert results.withdraw_aborted(partition_at(place)) is None
        assert [path.name for path in place.iterdir()] == ["delta_0000001_0000001_0000"]


def partition_at(place: Path) -> RecoveredPartition:
    nobody: Any = None
    return RecoveredPartition(TABLE, LocalStorage(str(place)), nobody, nobodys_pool(TABLE), None)
