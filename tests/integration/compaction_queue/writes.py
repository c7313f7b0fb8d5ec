"""Writes that a metastore of Hive 3 remembers, made in its database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_acid.acid.entity import Entity
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import ThriftAdmin


def execute(server: MetastoreServer, sql: str) -> list[tuple[object, ...]]:
    """The rows of a statement."""
    return [tuple(row) for row in server.server_database.query(sql)]


@dataclass(frozen=True)
class Writes:
    """A table with partitions, and transactions that wrote to it."""

    server: MetastoreServer
    admin: ThriftAdmin
    entity: Entity

    def write(self, partitions: Sequence[str | None], *, aborted: bool = False) -> int:
        """Writes to these partitions, spelled so; the write id."""
        [txn] = self.admin.open_transactions()
        write_id = self.admin.allocate_write_ids(self.entity.database, self.entity.table, [txn])[txn]
        for partition in partitions:
            name = "NULL" if partition is None else f"'{partition}'"
            execute(
                self.server,
                "INSERT INTO TXN_COMPONENTS (TC_TXNID, TC_DATABASE, TC_TABLE, TC_PARTITION, TC_OPERATION_TYPE, "
                f"TC_WRITEID) VALUES ({txn}, '{self.entity.database}', '{self.entity.table}', {name}, 'i', {write_id})",
            )
        (self.admin.abort if aborted else self.admin.commit)(txn)
        return write_id

    def remembered(self) -> dict[str, set[tuple[object, ...]]]:
        """Write id and partition of what is known as aborted and as committed."""
        found = {}
        for table, p in (("TXN_COMPONENTS", "TC_"), ("COMPLETED_TXN_COMPONENTS", "CTC_")):
            names = f"{p}DATABASE = '{self.entity.database}' AND {p}TABLE = '{self.entity.table}'"
            rows = execute(self.server, f"SELECT {p}WRITEID, {p}PARTITION FROM {table} WHERE {names}")
            found[table] = set(rows)
        return found
