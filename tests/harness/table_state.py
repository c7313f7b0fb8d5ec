"""What must hold of a table whatever died while it was compacted."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from unittest import mock

from thrift.transport.TTransport import TTransportException

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.recover.attempts import pool_of_txn
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow, LockState, TxnInfo, TxnState
from airflow_provider_acid.storages import local
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.acid_reader import Snapshot, as_hive_prints, read_table
from tests.harness.compaction_chain import Chain
from tests.harness.current_rows import comparable, snapshot_of
from tests.harness.hive_tables import FixtureTable, register
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import LockNotAcquiredError, ThriftAdmin
from tests.harness.thrift_answers import Transactions, WriteIds


@dataclass(frozen=True)
class TableState:
    """A registered fixture with the partition that is compacted, looked at from outside."""

    server: MetastoreServer
    table: FixtureTable
    entity: Entity

    @classmethod
    def of(
        cls, server: MetastoreServer, name: str, database: str, partition: str | None = None, version: str = "4.0.1"
    ) -> TableState:
        """Registers a fixture; see :func:`register`."""
        table = register(server, name, version, database)
        return cls(server, table, Entity(database, name, partition))

    def another(self, database: str) -> TableState:
        """The same table once more, as it was in the beginning."""
        fixture = self.table.fixture
        return self.of(self.server, fixture.name, database, self.entity.partition, fixture.version)

    @cached_property
    def renames_publish(self) -> bool:
        """Whether this is a Hive 3, where names tell no transaction and readers of every kind see the same."""
        with self._admin() as admin:
            return admin.is_hive_3

    @property
    def folder(self) -> Path:
        """Of the partition, or of the unpartitioned table."""
        return self.table.location / (self.entity.partition or "")

    def directories(self) -> set[str]:
        """All directories right in the partition, the hidden ones too."""
        return {child.name for child in self.folder.iterdir() if child.is_dir()}

    def visible_directories(self) -> set[str]:
        """Bases and deltas."""
        return {name for name in self.directories() if not name.startswith(("_", "."))}

    def result(self) -> list[str]:
        """All directories without what their names tell of transactions."""
        return sorted(re.sub(r"_v\d{7,}$", "", name) for name in self.directories())

    def check_rows(self, *, locking: bool = True) -> None:
        """Readers of Hive's and of Trino's kind see what Hive saw when it wrote the table.

        :param locking: whether it is promised to readers whom only locks protect, which take one before they list:
            those that ignore transactions, and on Hive 3 all; where that has to wait, they see nothing wrong.
        """
        if not self.renames_publish:
            assert self._read(check_visibility=True) == self._rows, "a reader of Hive's kind"
        if not locking:
            return
        with self._admin() as admin:
            (reader,) = admin.open_transactions()
            try:
                admin.lock_as_reader(reader, self.entity.database, self.entity.table, self.entity.partition)
                found = self._read(check_visibility=False)
            except LockNotAcquiredError:
                assert self._exclusive_locks(), "a reader of Trino's kind waits for nobody"
                return
            finally:
                admin.abort(reader)
        assert found == self._rows, "a reader of Trino's kind"

    def check_rows_without_lock(self) -> None:
        """The same, quicker: who needs a lock may see something else while an EXCLUSIVE one is held against him."""
        if not self.renames_publish:
            assert self._read(check_visibility=True) == self._rows, "a reader of Hive's kind"
        if not self.is_right_without_lock():
            assert LockState.ACQUIRED in self._exclusive_locks(), "a reader of Trino's kind"

    def is_right_without_lock(self) -> bool:
        """Whether who ignores transactions and locks, too, sees the right rows now."""
        return self._read(check_visibility=False) == self._rows

    @contextmanager
    def watched(self, *, at_once: bool = True) -> Iterator[None]:
        """Readers look after every change that this process makes to the table's directories.

        :param at_once: whether those that need a lock must be right from the beginning, or from the first moment at
            which they are.
        """
        promised = at_once

        def look() -> None:
            nonlocal promised
            promised = promised or self.is_right_without_lock()
            if promised:
                self.check_rows_without_lock()

        move, remove = LocalStorage.move, local._remove

        def move_watched(storage: LocalStorage, source: str, target: str) -> None:
            move(storage, source, target)
            look()

        def remove_watched(victim: str) -> None:
            remove(victim)
            look()

        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(LocalStorage, "move", move_watched))
            stack.enter_context(mock.patch.object(local, "_remove", remove_watched))
            yield
        assert promised, "readers that need a lock never saw the right rows"

    def snapshot(self) -> Snapshot:
        """What a reader knows who begins now and reads later; of Hive's kind."""
        ids, transactions = self._decided()
        return replace(snapshot_of(ids, transactions), transaction_high_water_mark=transactions.high_water_mark)

    def check_rows_of(self, snapshot: Snapshot) -> None:
        """A reader who began earlier still finds what it needs."""
        assert self._read_by(snapshot) == self._rows, "a reader of an older snapshot"

    def queue_rows(self) -> list[CompactionRow]:
        """The partition's requests, by id."""
        chain = Chain.on(self.server, self.entity)
        with chain.client() as client:
            return chain.queue(client).rows(entity=self.entity)

    def stored_states(self) -> tuple[list[object], list[object]]:
        """On Hive 3: what Hive itself takes the requests' states for, in the queue and in its history."""
        return self._stored("CQ", "COMPACTION_QUEUE"), self._stored("CC", "COMPLETED_COMPACTIONS")

    def check_finished(self, result: list[str]) -> None:
        """As after an undisturbed run: the rows, the result and nothing else, no row stuck, no transaction of ours.

        :param result: of the undisturbed run.
        """
        self.check_rows()
        assert self.result() == result
        if not self.renames_publish:
            assert len({name.rpartition("_v")[2] for name in self.directories()}) == 1, "one transaction made it all"
        self.check_nobody_waits()

    def check_nobody_waits(self) -> None:
        """Every request is history and every transaction of ours has ended."""
        assert [row for row in self.queue_rows() if not row.state.is_terminal] == []
        assert [txn for txn in self.our_transactions() if txn.state is TxnState.OPEN] == []
        with self._client() as client:
            assert client.show_locks(self.entity) == []
        if self.renames_publish:
            waiting, history = self.stored_states()
            assert waiting == []
            assert "s" in history

    def our_transactions(self) -> list[TxnInfo]:
        """The open and aborted ones of compactions, whichever table they are about."""
        with self._client() as client:
            return [txn for txn in client.transactions() if pool_of_txn(txn) is not None]

    @property
    def _rows(self) -> list[str]:
        return comparable(self.table.rows)

    def _admin(self) -> ThriftAdmin:
        return ThriftAdmin(self.server.host, self.server.port)

    def _client(self) -> AcidMetastoreClient:
        return Chain.on(self.server, self.entity).client()

    def _stored(self, prefix: str, table: str) -> list[object]:
        where = f"{prefix}_DATABASE = '{self.entity.database}' AND {prefix}_TABLE = '{self.entity.table}'"
        if self.entity.partition is not None:
            where += f" AND {prefix}_PARTITION = '{self.entity.partition}'"
        found = self.server.server_database.query(
            f"SELECT {prefix}_STATE FROM {table} WHERE {where} ORDER BY {prefix}_ID"
        )
        return [state for (state,) in found]

    def _exclusive_locks(self) -> list[LockState]:
        with self._client() as client:
            return [lock.state for lock in client.show_locks(self.entity) if lock.type == "EXCLUSIVE"]

    def _decided(self) -> tuple[WriteIds, Transactions]:
        """The metastore breaks the connection while a transaction has an id and is not stored yet."""
        for _ in range(10):
            with self._admin() as admin, suppress(TTransportException):
                return admin.write_ids(self.table.database, self.table.name), admin.transactions()
            time.sleep(0.5)
        raise AssertionError("the metastore does not list its transactions")

    def _read(self, *, check_visibility: bool) -> list[str]:
        return self._read_by(snapshot_of(*self._decided(), check_visibility=check_visibility))

    def _read_by(self, snapshot: Snapshot) -> list[str]:
        definition = self.table.fixture.definition
        found = read_table(self.table.location, definition.columns, snapshot, partition_keys=definition.partition_keys)
        return comparable(as_hive_prints(row) for row in found)
