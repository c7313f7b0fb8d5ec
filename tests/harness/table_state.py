"""What must hold of a table whatever died while it was compacted."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from thrift.transport.TTransport import TTransportException

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.plan import CompactionType
from airflow_provider_acid.compaction.attempts import pool_of_txn
from airflow_provider_acid.metastore.client import AcidMetastoreClient
from airflow_provider_acid.metastore.transport import MetastoreAddress
from airflow_provider_acid.metastore.values import TxnState
from tests.harness.acid_reader import as_hive_prints, read_table
from tests.harness.current_rows import comparable, snapshot_of
from tests.harness.hive_tables import FixtureTable, register
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import LockNotAcquiredError, ThriftAdmin, Transactions


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
        return cls(server, register(server, name, version, database), Entity(database, name, partition))

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

    def check_rows(self, *, trino: bool = True) -> None:
        """Readers of Hive's and of Trino's kind see what Hive saw when it wrote the table.

        :param trino: whether it is promised to readers that ignore transactions, which take a lock before they list;
            where that has to wait, they see nothing wrong.
        """
        assert self._read(check_visibility=True) == comparable(self.table.rows), "a reader of Hive's kind"
        if not trino:
            return
        with ThriftAdmin(self.server.host, self.server.port) as admin:
            (reader,) = admin.open_transactions()
            try:
                admin.lock_as_reader(reader, self.entity.database, self.entity.table, self.entity.partition)
                found = self._read(check_visibility=False)
            except LockNotAcquiredError:
                assert self._is_locked(), "a reader of Trino's kind waits for nobody"
                return
            finally:
                admin.abort(reader)
        assert found == comparable(self.table.rows), "a reader of Trino's kind"

    def _is_locked(self) -> bool:
        with AcidMetastoreClient([MetastoreAddress(self.server.host, self.server.port)]) as client:
            return any(lock.type == "EXCLUSIVE" for lock in client.show_locks(self.entity))

    def _transactions(self) -> Transactions:
        """The metastore breaks the connection while a transaction has an id and is not stored yet."""
        for _ in range(10):
            with ThriftAdmin(self.server.host, self.server.port) as admin, suppress(TTransportException):
                return admin.transactions()
            time.sleep(0.5)
        raise AssertionError("the metastore does not list its transactions")

    def _read(self, *, check_visibility: bool) -> list[str]:
        transactions = self._transactions()
        with ThriftAdmin(self.server.host, self.server.port) as admin:
            ids = admin.write_ids(self.table.database, self.table.name)
        definition = self.table.fixture.definition
        snapshot = snapshot_of(ids, transactions, check_visibility=check_visibility)
        found = read_table(self.table.location, definition.columns, snapshot, partition_keys=definition.partition_keys)
        return comparable(as_hive_prints(row) for row in found)

    def check_finished(self, type: CompactionType = CompactionType.MAJOR) -> None:
        """As after an undisturbed run: the rows, the result and nothing else, no row stuck, no transaction of ours."""
        self.check_rows()
        names = sorted(self.directories())
        if type is CompactionType.MAJOR:
            assert re.fullmatch(r"base_\d{7}_v\d{7,}", " ".join(names)), names
        else:
            pair = re.fullmatch(r"delete_delta_(\d{7}_\d{7}_v\d{7,}) delta_(\d{7}_\d{7}_v\d{7,})", " ".join(names))
            assert pair is not None, names
            assert pair[1] == pair[2]
        self.check_nobody_waits()

    def check_nobody_waits(self) -> None:
        """Every request is history and every transaction of ours has ended."""
        with AcidMetastoreClient([MetastoreAddress(self.server.host, self.server.port)]) as client:
            assert [row for row in client.compactions(entity=self.entity) if not row.state.is_terminal] == []
            open_transactions = [txn for txn in client.transactions() if txn.state is TxnState.OPEN]
            locks = client.show_locks(self.entity)
        assert [txn for txn in open_transactions if pool_of_txn(txn) is not None] == []
        assert locks == []
