"""What an attempt published that is taken for dead: taken back where its transaction is known to be aborted."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.publish.journal import PublicationJournal, find_journal, write_journal
from airflow_provider_acid.compaction.publish.staging import staging_name
from airflow_provider_acid.compaction.recover.withdrawal import Withdrawal
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.exceptions import OwnershipLostError
from airflow_provider_acid.metastore.values import TxnState
from airflow_provider_acid.storages.local import LocalStorage

TXN = 7
BASE = "base_0000003_v0000007"
ROWS, DELETES = "delta_0000001_0000003_v0000007", "delete_delta_0000001_0000003_v0000007"
OURS, ANOTHERS = staging_name("0123456789abcdef"), staging_name("fedcba9876543210")
BUSY = OwnershipLostError("the lock", "is another's", "none")


class Client:
    """A metastore; locks are not to be had."""

    def __init__(self, state: TxnState) -> None:
        self.state = state

    def transaction_state(self, txn_id: int) -> TxnState:
        return self.state

    def abort(self, txn_id: int) -> None:
        assert self.state is TxnState.OPEN
        self.state = TxnState.ABORTED

    def server_now_ms(self) -> int:
        raise BUSY


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def withdraw(storage: LocalStorage, state: TxnState, *, honoured: bool = True) -> Client:
    client, settings = Client(state), CompactionSettings(readers_honour_visibility=honoured)
    withdrawal = Withdrawal(cast(Any, client), settings, Entity("db", "t"), storage, asker="cleaner", owner=None)
    assert withdrawal.withdraw(TXN) is None
    return client


@pytest.mark.parametrize("state", [TxnState.OPEN, TxnState.ABORTED])
def test_it_goes_with_its_transaction(storage: LocalStorage, state: TxnState) -> None:
    storage.make_directory(BASE)
    assert withdraw(storage, state).state is TxnState.ABORTED
    assert not storage.exists(BASE)


@pytest.mark.parametrize("names", [(BASE,), (ROWS,), (ROWS, DELETES)])
def test_what_may_have_been_committed_stays(storage: LocalStorage, names: tuple[str, ...]) -> None:
    for name in names:
        storage.make_directory(name)
    with pytest.raises(OwnershipLostError, match="transaction 7 is not aborted"):
        withdraw(storage, TxnState.COMMITTED_OR_UNKNOWN)
    assert [name for name in names if not storage.exists(name)] == []


def noted(storage: LocalStorage, staging: str, txn_id: int, *targets: str) -> None:
    storage.make_directory(staging)
    write_journal(storage, staging, PublicationJournal(targets, txn_id, None))


def test_half_goes_at_once_whoever_moved_its_journal_and_a_whole_pair_waits_for_the_lock(
    storage: LocalStorage,
) -> None:
    noted(storage, ANOTHERS, TXN + 1, ROWS)
    noted(storage, OURS, TXN, ROWS, DELETES)
    storage.make_directory(DELETES)
    withdraw(storage, TxnState.ABORTED, honoured=False)
    assert not storage.exists(DELETES)
    storage.make_directory(ROWS)
    storage.make_directory(DELETES)
    with pytest.raises(OwnershipLostError, match="is another's"):
        withdraw(storage, TxnState.ABORTED, honoured=False)
    assert storage.exists(ROWS)
    assert storage.exists(DELETES)


def test_a_journal_is_found_by_its_transaction(storage: LocalStorage) -> None:
    noted(storage, ANOTHERS, TXN + 1, ROWS)
    noted(storage, OURS, TXN, ROWS, DELETES)
    found = find_journal(storage, (ANOTHERS, OURS), TXN)
    assert found is not None
    assert found.targets == (ROWS, DELETES)
    assert find_journal(storage, (ANOTHERS, OURS), TXN + 2) is None
