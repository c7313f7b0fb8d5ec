"""A table after a compaction on a Hive 3.1 that exists in memory only, and its cleaner."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_3
from airflow_provider_acid.acid.write_ids import TableWriteIds
from airflow_provider_acid.compaction.clean.cleaner import Cleaner
from airflow_provider_acid.compaction.clean.cleaning import Cleaning
from airflow_provider_acid.compaction.publish.discard import DISCARD_PREFIX
from airflow_provider_acid.compaction.publish.replaced import write_replaced
from airflow_provider_acid.compaction.publish.staging import staging_name
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.steps import StepListener, ignore_steps
from airflow_provider_acid.exceptions import ObjectNotFoundError, OwnershipLostError, RefusedError
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import (
    CompactionRow,
    CompactionState,
    DatabaseInfo,
    LockInfo,
    OpenTxns,
    TableInfo,
    TxnInfo,
    TxnState,
)
from airflow_provider_acid.storages.local import LocalStorage

NOW_MS = 10_000_000
TABLE = Entity("d", "t")
POOL = RequestPool("0123456789ab", "0123456789abcdef")
STAGING = staging_name(POOL.token)
INPUTS = ("delta_0000001_0000001_0000", "delta_0000002_0000002_0000", "delta_0000003_0000003_0000")


class FakeClient(AcidMetastoreClient):
    """A metastore that knows one unpartitioned table."""

    def __init__(self, location: Path) -> None:
        self.location = location
        self.open: tuple[int, ...] = ()
        self.aborted: tuple[int, ...] = ()
        self.aborted_write_ids: frozenset[int] = frozenset()
        self.open_write_ids: frozenset[int] = frozenset()
        self.parameters: dict[str, str] = {}
        self.is_dropped = False
        self.is_opening = False
        self.transaction_host = "there"
        self.locks: list[LockInfo] = []

    def get_table(self, database: str, name: str) -> TableInfo:
        if self.is_dropped:
            raise ObjectNotFoundError("table d.t", "does not exist", "none")
        return TableInfo(
            database, name, str(self.location), (), (), self.parameters, -1, (), "MANAGED_TABLE", "", "hive"
        )

    def get_database(self, name: str) -> DatabaseInfo:
        return DatabaseInfo(name, {}, str(self.location.parent))

    def config_value(self, name: str) -> str:
        return ""

    def table_locations(self) -> Iterator[tuple[Entity, str]]:
        yield TABLE, str(self.location)

    def get_partition_names(self, database: str, table: str) -> list[str]:
        return []

    def open_transactions(self) -> OpenTxns:
        if self.is_opening:
            return OpenTxns(50, (), self.aborted, None)
        return OpenTxns(50, self.open, self.aborted, min(self.open, default=None))

    def transactions(self) -> list[TxnInfo]:
        found = [(txn, TxnState.OPEN) for txn in self.open] + [(txn, TxnState.ABORTED) for txn in self.aborted]
        return [TxnInfo(txn, state, "eve", self.transaction_host, None, NOW_MS, NOW_MS) for txn, state in found]

    def show_locks(self, entity: Entity | None = None) -> list[LockInfo]:
        return self.locks

    def server_now_ms(self) -> int:
        return NOW_MS

    def txn_timeout_seconds(self) -> float:
        return 300.0

    def valid_write_ids(self, full_table_names: Sequence[str], valid_txn_list: str) -> list[TableWriteIds]:
        return [TableWriteIds(full_table_names[0], 9, self.open_write_ids, self.aborted_write_ids)]


class FakeQueue:
    """A queue of Hive 3.1 with one row.

    :param there: what lay in the table when the row went to history.
    """

    database = None
    hive = HIVE_3

    def __init__(self, location: Path, row: CompactionRow) -> None:
        self.location = location
        self.waiting = [row]
        self.kept: list[int] = []
        self.forgotten: list[int | None] = []
        self.there: list[set[str]] = []
        self.error: Exception | None = None

    def ready_to_clean(self, entities: Iterable[Entity]) -> list[CompactionRow]:
        return [row for row in self.waiting if row.entity in set(entities)]

    def row(self, id: int) -> CompactionRow | None:
        return next((row for row in self.waiting if row.id == id), None)

    def rows(self, **chosen: Any) -> list[CompactionRow]:
        return self.waiting

    def fail(self, row: CompactionRow, message: str) -> None:
        raise AssertionError(f"{row} is to be cleaned: {message}")

    def keep(self, row: CompactionRow) -> None:
        if self.error is not None:
            raise self.error
        self.kept.append(row.id)

    def cleaned(self, row: CompactionRow, highest_write_id: int | None) -> None:
        if self.error is not None:
            raise self.error
        self.forgotten.append(highest_write_id)
        self.there.append({path.name for path in self.location.iterdir()} if self.location.exists() else set())
        self.waiting.remove(row)


class CleaningLock:
    """The partition's locks, as far as a cleaning's transaction has to do with them.

    :param refusal: why not even the shared lock is granted.
    :param checks_until_lost: after so many looks the transaction is aborted.
    :param seen: what happened, with how many inputs were in the table then, and how many lay in the discard.
    """

    def __init__(self) -> None:
        self.is_granted = True
        self.refusal: str | None = None
        self.checks_until_lost: int | None = None
        self.is_lost_at_commit = False
        self.seen: list[tuple[str, int, int]] = []
        self.folder = Path()

    def transaction(self, client: object, entity: Entity, **limits: object) -> CleaningTransaction:
        return CleaningTransaction(self)

    def note(self, what: str) -> None:
        discarded = list(self.folder.glob(f"{DISCARD_PREFIX}*/*"))
        self.seen.append((what, sum((self.folder / name).exists() for name in INPUTS), len(discarded)))


class CleaningTransaction:
    """Stands for a :class:`~airflow_provider_acid.metastore.transaction.CompactionTransaction`."""

    def __init__(self, lock: CleaningLock) -> None:
        self._lock = lock
        self._checks = 0
        self._is_over = False
        self.exclusive_lock_id: int | None = None

    def start(self) -> None:
        if self._lock.refusal is not None:
            raise RefusedError("d.t", self._lock.refusal, "-")

    def is_alone(self) -> bool:
        return self._lock.is_granted

    def ask_exclusive(self) -> None:
        self._lock.note("asked")
        self.exclusive_lock_id = 8

    def has_exclusive(self) -> bool:
        if self._lock.is_granted:
            self._lock.note("held")
        return self._lock.is_granted

    def blockers(self) -> str:
        return "eve"

    def check(self) -> None:
        if self._checks == self._lock.checks_until_lost:
            raise OwnershipLostError("transaction 9", "was aborted", "-")
        self._checks += 1

    def commit(self) -> None:
        self._lock.note("given back")
        self._is_over = True
        if self._lock.is_lost_at_commit:
            raise OwnershipLostError("transaction 9", "was aborted", "-")

    def close(self) -> None:
        if not self._is_over:
            self._lock.note("withdrawn")


class Site:
    """A table in a folder after a major compaction of three deltas, and its cleaner."""

    def __init__(self, folder: Path, lock: CleaningLock) -> None:
        self.folder = lock.folder = folder
        self.client = FakeClient(folder)
        self.row = CompactionRow(
            7,
            TABLE,
            "major",
            CompactionState.READY_FOR_CLEANING,
            pool=str(POOL),
            start_ms=NOW_MS,
            highest_write_id=3,
            next_txn_id=20,
            commit_ms=NOW_MS,
            txn_id=19,
            newest_lock_id=0,
        )
        self.queue = FakeQueue(folder, self.row)
        self.settings = CompactionSettings()
        folder.mkdir()
        self.add(*INPUTS)
        self.add_base("base_0000003")
        self.note(INPUTS)

    def add(self, *names: str) -> None:
        for name in names:
            (self.folder / name).mkdir()
            (self.folder / name / "bucket_00000").write_bytes(b"ORC")

    def add_base(self, name: str) -> None:
        self.add(name)
        (self.folder / name / "_metadata_acid").write_text('{"thisFileVersion":"0","dataFormat":"compacted"}')

    def remove(self, *names: str) -> None:
        for name in names:
            shutil.rmtree(self.folder / name)

    def note(self, names: Collection[str]) -> None:
        (self.folder / STAGING).mkdir(exist_ok=True)
        write_replaced(LocalStorage(str(self.folder)), STAGING, names)

    def cleaner(self, on_step: StepListener = ignore_steps) -> Cleaner:
        queue = cast("CompactionQueue", self.queue)
        return Cleaner(self.client, queue, self.settings, on_step=on_step, sleep=self._let_transactions_open)

    def _let_transactions_open(self, seconds: float) -> None:
        self.client.is_opening = False

    def clean(self, on_step: StepListener = ignore_steps) -> Cleaning:
        (cleaning,) = self.cleaner(on_step).clean([TABLE])
        return cleaning

    def look(self) -> Cleaning:
        (cleaning,) = self.cleaner().look([TABLE])
        return cleaning

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}
