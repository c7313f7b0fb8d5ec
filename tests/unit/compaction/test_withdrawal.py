"""What an attempt published that is taken for dead: taken back where its transaction is known to be aborted."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.publish.journal import PublicationJournal, find_journal, write_journal
from airflow_provider_acid.compaction.publish.staging import staging_name
from airflow_provider_acid.compaction.recover import withdrawal
from airflow_provider_acid.compaction.recover.attempts import nobodys_pool
from airflow_provider_acid.compaction.recover.withdrawal import Withdrawal
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.exceptions import LastCopyError, OwnershipLostError
from airflow_provider_acid.metastore.values import LockInfo, LockState, OpenTxns, TxnInfo, TxnState
from airflow_provider_acid.storages.local import LocalStorage

TXN = 7
ENTITY = Entity("db", "t")
BASE = "base_0000003_v0000007"
SOURCE = "delta_0000002_0000002_0000"
ROWS, DELETES = "delta_0000001_0000003_v0000007", "delete_delta_0000001_0000003_v0000007"
OURS, ANOTHERS = staging_name("0123456789abcdef"), staging_name("fedcba9876543210")
BUSY = OwnershipLostError("the lock", "is another's", "none")


class Client:
    """A metastore; locks are not to be had."""

    def __init__(self, state: TxnState) -> None:
        self.state = state

    def transaction_state(self, txn_id: int) -> TxnState:
        return self.state

    def open_transactions(self) -> OpenTxns:
        return OpenTxns(TXN, (TXN,) if self.state is TxnState.OPEN else (), (TXN - 1, TXN), None)

    def abort(self, txn_id: int) -> None:
        assert self.state is TxnState.OPEN
        self.state = TxnState.ABORTED

    def server_now_ms(self) -> int:
        raise BUSY


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def withdraw(storage: LocalStorage, state: TxnState, *, honoured: bool = True) -> Client:
    client = Client(state)
    withdraw_by(client, storage, honoured=honoured)
    return client


def withdraw_by(client: Client, storage: LocalStorage, *, honoured: bool) -> None:
    settings = CompactionSettings(readers_honour_visibility=honoured)
    removal = Withdrawal(cast(Any, client), settings, ENTITY, storage, asker="cleaner", owner=None)
    assert removal.withdraw(TXN) is None


class EndsMeanwhile(Client):
    """Its transaction ends right before it would be aborted."""

    def __init__(self, ends_as: TxnState) -> None:
        super().__init__(TxnState.OPEN)
        self.ends_as = ends_as

    def abort(self, txn_id: int) -> None:
        self.state = self.ends_as
        raise BUSY


def test_a_transaction_that_the_metastore_aborts_meanwhile_is_as_good(storage: LocalStorage) -> None:
    storage.make_directory(SOURCE)
    storage.make_directory(BASE)
    withdraw_by(EndsMeanwhile(TxnState.ABORTED), storage, honoured=True)
    assert storage.list().directories == (SOURCE,)


def test_what_is_committed_meanwhile_stays(storage: LocalStorage) -> None:
    storage.make_directory(SOURCE)
    storage.make_directory(BASE)
    with pytest.raises(OwnershipLostError, match="is not aborted"):
        withdraw_by(EndsMeanwhile(TxnState.COMMITTED_OR_UNKNOWN), storage, honoured=True)
    assert set(storage.list().directories) == {SOURCE, BASE}


@pytest.mark.parametrize("state", [TxnState.OPEN, TxnState.ABORTED])
def test_it_goes_with_its_transaction(storage: LocalStorage, state: TxnState) -> None:
    storage.make_directory(SOURCE)
    storage.make_directory(BASE)
    assert withdraw(storage, state).state is TxnState.ABORTED
    assert storage.list().directories == (SOURCE,)


@pytest.mark.parametrize("state", [TxnState.OPEN, TxnState.ABORTED])
@pytest.mark.parametrize("honoured", [True, False])
@pytest.mark.parametrize("names", [(BASE,), (ROWS,), (ROWS, DELETES)])
@pytest.mark.parametrize("others", [(), ("base_0000003_v0000006", "_tmp")], ids=["nothing", "another that was aborted"])
def test_the_last_copy_of_its_rows_stays_and_so_does_its_transaction(
    storage: LocalStorage, state: TxnState, honoured: bool, names: tuple[str, ...], others: tuple[str, ...]
) -> None:
    for name in (*names, *others):
        storage.make_directory(name)
    client = Client(state)
    with pytest.raises(LastCopyError, match=f"{names[0]}.* is all that is left of its rows"):
        withdraw_by(client, storage, honoured=honoured)
    assert client.state is state
    assert storage.list().directories == tuple(sorted((*names, *others)))


def test_it_stays_where_its_sources_go_while_the_lock_is_waited_for(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.make_directory(SOURCE)
    storage.make_directory(BASE)
    monkeypatch.setattr(withdrawal, "end_dead_lockers", lambda *_: None)
    monkeypatch.setattr(withdrawal, "removers_transaction", lambda *_: nullcontext())
    monkeypatch.setattr(withdrawal, "wait_for_exclusive", lambda *_: storage.delete([SOURCE]))
    with pytest.raises(LastCopyError):
        withdraw(storage, TxnState.ABORTED, honoured=False)
    assert storage.list().directories == (BASE,)


class Lockers:
    """A metastore that forgets transactions as soon as they are ended; each of them here held two locks.

    :param ended: by others, since who is alive was looked up.
    """

    def __init__(self, *txns: int, ended: set[int]) -> None:
        self.txns = txns
        self.ended = set(ended)
        self.asked: list[int] = []

    def server_now_ms(self) -> int:
        return 1_000_000

    def transactions(self) -> list[TxnInfo]:
        host = nobodys_pool(ENTITY).worker_id("here")
        return [TxnInfo(txn, TxnState.OPEN, "airflow", host, None, 0, 0) for txn in self.txns]

    def show_locks(self, entity: Entity) -> list[LockInfo]:
        return [
            LockInfo(number, "db", entity, LockState.ACQUIRED, type, txn, "airflow", "here", 0, 0, None)
            for txn in self.txns
            for number, type in enumerate(("SHARED_READ", "EXCLUSIVE"))
        ]

    def abort(self, txn_id: int) -> None:
        self.asked.append(txn_id)
        if txn_id in self.ended:
            raise OwnershipLostError(f"transaction {txn_id}", "NoSuchTxnException", "none")
        self.ended.add(txn_id)


@pytest.mark.parametrize("ended", [set(), {TXN}, {TXN + 1}], ids=["nobody", "the first", "the second"])
def test_of_dead_lockers_each_ends_once_and_one_that_ended_meanwhile_keeps_no_other(ended: set[int]) -> None:
    client = Lockers(TXN, TXN + 1, ended=ended)
    settings = CompactionSettings(transaction_timeout_seconds=1.0)
    withdrawal.end_dead_lockers(cast(Any, client), settings, ENTITY, None)
    assert client.ended == {TXN, TXN + 1}
    assert sorted(client.asked) == [TXN, TXN + 1]


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
    storage.make_directory(SOURCE)
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
