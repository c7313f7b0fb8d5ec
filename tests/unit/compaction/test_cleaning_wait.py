"""What the cleaning of a compaction waits for, and how little it asks to know it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from airflow_provider_acid.acid.entity import Entity, whatever_spelling
from airflow_provider_acid.compaction.clean.wait import Readers
from airflow_provider_acid.metastore.values import (
    CompactionRow,
    CompactionState,
    LockInfo,
    LockState,
    OpenTxns,
    TxnInfo,
    TxnState,
)

NOW_MS = 1_000_000
PARTITION = Entity("d", "t", "p=A%2FB")
ROW = CompactionRow(
    1,
    PARTITION,
    "major",
    CompactionState.READY_FOR_CLEANING,
    next_txn_id=20,
    commit_ms=NOW_MS - 60_000,
    newest_lock_id=100,
)


class FakeClient:
    """Knows the given open transactions, look by look, and locks; counts what it is asked."""

    def __init__(
        self, *open_txns: tuple[int, ...], high_water_mark: int = 30, locks: tuple[LockInfo, ...] = ()
    ) -> None:
        self.looks = list(open_txns or ((),))
        self.high_water_mark = high_water_mark
        self.locks = locks
        self.asked: Counter[str] = Counter()

    def open_transactions(self) -> OpenTxns:
        self.asked["open_transactions"] += 1
        found = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return OpenTxns(self.high_water_mark, found, (), min(found, default=None))

    def transactions(self) -> list[TxnInfo]:
        self.asked["transactions"] += 1
        return [TxnInfo(txn, TxnState.OPEN, "eve", "there", None, NOW_MS - 42_000, NOW_MS) for txn in self.looks[0]]

    def show_locks(self) -> list[LockInfo]:
        self.asked["show_locks"] += 1
        return list(self.locks)

    def server_now_ms(self) -> int:
        self.asked["server_now_ms"] += 1
        return NOW_MS


def lock(id: int = 100, entity: Entity | None = PARTITION, **changes: object) -> LockInfo:
    held = LockInfo(
        id, "d", entity, LockState.ACQUIRED, "SHARED_READ", None, "eve", "there", NOW_MS - 7_000, NOW_MS, None
    )
    return replace(held, **changes)  # type: ignore[arg-type]


def waits(
    client: FakeClient,
    row: CompactionRow = ROW,
    *,
    locks_count: bool = True,
    retention: float = 0,
    queue_seconds: float | None = None,
) -> str | None:
    return Readers(client, retention, locks_count=locks_count, queue_seconds=queue_seconds).waits_for(row)


@pytest.mark.parametrize("locks_count", [True, False], ids=["Hive 3", "Hive 4"])
@pytest.mark.parametrize(
    ("open_txns", "waits_for"),
    [
        ((), None),
        ((21,), None),
        ((20,), "waits for transaction 20 of eve@there, open for 42 s"),
        ((3, 21), "waits for transaction 3 of eve@there, open for 42 s"),
    ],
)
def test_it_waits_for_transactions_up_to_the_one_of_the_publication(
    open_txns: tuple[int, ...], waits_for: str | None, locks_count: bool
) -> None:
    assert waits(FakeClient(open_txns), locks_count=locks_count) == waits_for


def test_without_open_transactions_the_next_one_is_the_lowest_that_may_begin() -> None:
    assert waits(FakeClient(high_water_mark=20)) is None
    assert waits(FakeClient(high_water_mark=19)) == "waits for transaction 20"


@pytest.mark.parametrize("locks_count", [True, False], ids=["Hive 3", "Hive 4"])
@pytest.mark.parametrize(
    ("found", "queue_seconds", "waits_for"),
    [
        (lock(101), 6, "waits for lock 101 of eve@there, held for 7 s, beside which nothing is deleted"),
        (
            lock(101, None, type="EXCLUSIVE"),
            6,
            "waits for lock 101 of eve@there, held for 7 s, beside which nothing is deleted",
        ),
        (lock(101, None), 6, None),
        (lock(101), 7, None),
        (lock(101), None, None),
        (lock(101, Entity("d", "t", "p=other")), 6, None),
        (lock(101, state=LockState.WAITING, acquired_ms=None), 6, None),
    ],
    ids=[
        "one that stays",
        "on the database",
        "that only keeps the database",
        "one that may end",
        "no lock wanted",
        "elsewhere",
        "waits itself",
    ],
)
def test_beside_a_newer_lock_that_is_held_for_longer_than_others_may_be_made_to_wait_nothing_is_deleted(
    found: LockInfo, queue_seconds: float | None, waits_for: str | None, locks_count: bool
) -> None:
    client = FakeClient(locks=(found,))
    assert waits(client, locks_count=locks_count, queue_seconds=queue_seconds) == waits_for


@pytest.mark.parametrize("missing", ["next_txn_id", "commit_ms"])
def test_what_is_not_published_is_not_cleaned(missing: str) -> None:
    row = replace(ROW, txn_id=19, **{missing: None})  # type: ignore[arg-type]
    assert waits(FakeClient(), row) == "waits for the commit of its compaction transaction 19"


@pytest.mark.parametrize(
    "blocker",
    [
        lock(),
        lock(1),
        lock(txn_id=25),
        lock(state=LockState.WAITING),
        lock(entity=Entity("d", "t", "p=a%2fb")),
        lock(entity=Entity("d", "t", "p=A%252FB")),
        lock(entity=Entity("D", "T", None)),
        lock(entity=None),
        lock(entity=None, database="D"),
    ],
    ids=[
        "the newest of the publication",
        "an older one",
        "of a transaction that began later",
        "waited for",
        "as Hive 3.1 spells the partition",
        "as Hive 4 spells it",
        "on the table",
        "on the database",
        "on the database in upper case",
    ],
)
def test_on_hive_3_it_waits_for_locks_of_the_time_of_the_publication(blocker: LockInfo) -> None:
    found = waits(FakeClient(locks=(blocker,)))
    assert found is not None
    assert found.startswith(f"waits for lock {blocker.lock_id} ")


@pytest.mark.parametrize(
    "other",
    [
        lock(101),
        lock(entity=Entity("d", "t", "p=A")),
        lock(entity=Entity("d", "u", "p=A%2FB")),
        lock(entity=Entity("e", "t", "p=A%2FB")),
        lock(entity=None, database="e"),
    ],
    ids=["newer", "another partition", "another table", "another database's table", "another database"],
)
def test_it_waits_for_no_other_lock(other: LockInfo) -> None:
    assert waits(FakeClient(locks=(other,))) is None


def test_an_unpartitioned_table_also_waits_for_locks_that_name_a_part_of_it() -> None:
    assert waits(FakeClient(locks=(lock(),)), replace(ROW, entity=Entity("d", "t"))) is not None


def test_where_no_newest_lock_was_recorded_any_may_be_a_readers() -> None:
    assert waits(FakeClient(locks=(lock(10**9),)), replace(ROW, newest_lock_id=None)) is not None
    assert waits(FakeClient(locks=(lock(1),)), replace(ROW, newest_lock_id=0)) is None


@pytest.mark.parametrize(
    ("blocker", "text"),
    [
        (lock(), "lock 100 of eve@there, held for 7 s"),
        (lock(txn_id=9), "lock 100 (transaction 9) of eve@there, held for 7 s"),
        (
            lock(state=LockState.WAITING, acquired_ms=None, last_heartbeat_ms=NOW_MS - 3_000),
            "lock 100 of eve@there, not granted yet, last heard of 3 s ago",
        ),
        (lock(acquired_ms=None, last_heartbeat_ms=None), "lock 100 of eve@there, not granted yet"),
    ],
)
def test_the_lock_is_named_with_its_owner_and_its_age(blocker: LockInfo, text: str) -> None:
    assert waits(FakeClient(locks=(lock(101), blocker))) == f"waits for {text}"


def test_the_oldest_lock_is_named_first() -> None:
    assert waits(FakeClient(locks=(lock(9), lock(5), lock(7)))) == "waits for lock 5 of eve@there, held for 7 s"


def test_on_hive_4_no_lock_is_looked_at() -> None:
    client = FakeClient(locks=(lock(),))
    assert waits(client, locks_count=False) is None
    assert client.asked["show_locks"] == 0


@pytest.mark.parametrize(("retention", "waits_for"), [(61, "is kept for 1 s more (retention)"), (60, None), (0, None)])
def test_readers_that_nobody_knows_have_the_retention_time(retention: float, waits_for: str | None) -> None:
    assert waits(FakeClient(), retention=retention) == waits_for


def test_a_transaction_that_was_just_being_opened_is_found_by_the_second_look() -> None:
    readers = Readers(FakeClient((), (20,), high_water_mark=20), 0, locks_count=True, queue_seconds=None)
    assert readers.waits_for(ROW) is None
    readers.look_again()
    assert readers.waits_for(ROW) == "waits for transaction 20 of eve@there, open for 42 s"


def test_the_second_look_forgets_nobody_whom_the_first_one_saw() -> None:
    readers = Readers(FakeClient((20,), ()), 0, locks_count=True, queue_seconds=None)
    readers.look_again()
    assert readers.waits_for(ROW) == "waits for transaction 20"
    assert readers.horizon.min_open_txn == 20


def test_one_look_is_one_question_each_however_many_rows_there_are() -> None:
    client = FakeClient((15,), locks=(lock(),))
    readers = Readers(client, 3600, locks_count=True, queue_seconds=None)
    rows = [replace(ROW, id=number, next_txn_id=10 + number) for number in range(10)]
    assert len({readers.waits_for(row) for row in rows}) == 2
    assert client.asked == {"open_transactions": 1, "show_locks": 1, "transactions": 1, "server_now_ms": 1}


def test_where_nobody_is_waited_for_neither_names_nor_the_clock_are_asked_for() -> None:
    client = FakeClient((21,), locks=(lock(101),))
    assert waits(client) is None
    assert client.asked == {"open_transactions": 1, "show_locks": 1}


@pytest.mark.parametrize(
    ("keep_seconds", "committed_seconds_ago", "seconds"),
    [(0, 10, 0), (60, 10, 50), (60, 60, 0), (60, 100, 0), (60, None, 0)],
)
def test_what_was_replaced_is_kept_for_so_long_after_the_commit(
    keep_seconds: float, committed_seconds_ago: float | None, seconds: float
) -> None:
    commit_ms = None if committed_seconds_ago is None else NOW_MS - int(committed_seconds_ago * 1000)
    readers = Readers(FakeClient(), 0, locks_count=False, queue_seconds=None)
    assert readers.seconds_kept(replace(ROW, commit_ms=commit_ms), keep_seconds) == seconds


def test_a_lock_is_not_looked_at_for_each_row_that_it_is_not_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen: 1,200 comparisons for each of 1,500 partitions, while a batch of another table was at work."""
    locks = tuple(lock(id, replace(PARTITION, partition=f"p={id}")) for id in range(500))
    readers = Readers(FakeClient(locks=locks), 0, locks_count=True, queue_seconds=None)
    looked_at: list[str] = []

    def counted(name: str) -> str:
        looked_at.append(name)
        return whatever_spelling(name)

    monkeypatch.setattr("airflow_provider_acid.metastore.values.whatever_spelling", counted)
    for id in range(500):
        waits_for = readers.waits_for(replace(ROW, entity=replace(PARTITION, partition=f"p={id}"), newest_lock_id=None))
        assert waits_for == f"waits for lock {id} of eve@there, held for 7 s"
    assert len(looked_at) == 500
