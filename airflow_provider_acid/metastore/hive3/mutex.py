"""The mutex that the Initiators of a metastore's instances hold among themselves (Hive's ``MutexAPI``)."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.engine import Connection

from airflow_provider_acid.metastore.database.database import HiveTable, MetastoreDatabase

KEY = "Initiator"
"""MT_KEY1 of the row that is locked; Hive 3.1 always uses the one with MT_KEY2 = 0."""


@dataclass(frozen=True)
class InitiatorMutex:
    """While it is held, no Initiator evaluates tables or takes back claims."""

    table: HiveTable

    @classmethod
    def of(cls, database: MetastoreDatabase) -> InitiatorMutex:
        """Look its table up.

        :raises MetastoreVersionError: the table, or a column, is not there.
        """
        return cls(database.table("AUX_TABLE", ("MT_KEY1", "MT_KEY2")))

    def hold(self, connection: Connection) -> None:
        """Take the mutex until the transaction ends; the row is missing where no Initiator ever ran.

        :raises sqlalchemy.exc.DBAPIError: somebody else holds it.
        """
        connection.execute(
            select(self.table["MT_KEY2"])
            .where(self.table["MT_KEY1"] == KEY, self.table["MT_KEY2"] == 0)
            .with_for_update(nowait=_can_refuse_to_wait(connection))
        )


def _can_refuse_to_wait(connection: Connection) -> bool:
    """All but MySQL before 8, which waits as long as the session's lock time-out says."""
    dialect = connection.dialect
    if dialect.name != "mysql" or getattr(dialect, "is_mariadb", False):
        return True
    version: tuple[int, ...] = getattr(dialect, "server_version_info", None) or (8,)
    return version >= (8,)
