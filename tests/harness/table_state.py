"""What must hold of a table whatever died while it was compacted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.attempts import pool_of_txn
from airflow_provider_acid.metastore.client import AcidMetastoreClient
from airflow_provider_acid.metastore.transport import MetastoreAddress
from airflow_provider_acid.metastore.values import TxnState
from tests.harness.acid_reader import Snapshot, as_hive_prints, read_table
from tests.harness.hive_tables import FixtureTable, register
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import ThriftAdmin


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

    def check_rows(self) -> None:
        """Readers of Hive's and of Trino's kind see what Hive saw when it wrote the table."""
        expected = _comparable(self.table.rows)
        with ThriftAdmin(self.server.host, self.server.port) as admin:
            ids = admin.write_ids(self.table.database, self.table.name)
            transactions = admin.transactions()
        definition = self.table.fixture.definition
        for check_visibility in (True, False):
            snapshot = Snapshot(
                ids.high_water_mark,
                ids.open,
                ids.aborted,
                transactions.open | transactions.aborted,
                check_visibility=check_visibility,
            )
            found = read_table(
                self.table.location, definition.columns, snapshot, partition_keys=definition.partition_keys
            )
            assert _comparable(as_hive_prints(row) for row in found) == expected, f"Hive's form: {check_visibility}"

    def check_finished(self) -> None:
        """As after an undisturbed run: the rows, one base and nothing else, no row stuck, no transaction of ours."""
        self.check_rows()
        names = self.directories()
        assert len(names) == 1, names
        assert re.fullmatch(r"base_\d{7}_v\d{7,}", names.pop())
        self.check_nobody_waits()

    def check_nobody_waits(self) -> None:
        """Every request is history and every transaction of ours has ended."""
        with AcidMetastoreClient([MetastoreAddress(self.server.host, self.server.port)]) as client:
            assert [row for row in client.compactions(entity=self.entity) if not row.state.is_terminal] == []
            open_transactions = [txn for txn in client.transactions() if txn.state is TxnState.OPEN]
        assert [txn for txn in open_transactions if pool_of_txn(txn) is not None] == []


def _comparable(rows: object) -> list[str]:
    assert not isinstance(rows, Mapping)
    values = ({name: value for name, value in row.items() if name != "file"} for row in rows)  # type: ignore[attr-defined]
    return sorted(json.dumps(row, sort_keys=True) for row in values)
