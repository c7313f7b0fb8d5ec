"""The clock of a Hive 3.1 metastore.

It asks its database for the time of day and takes that for one of its own time zone (``TxnHandler.getDbTime``). MySQL's
and MariaDB's names no zone: where the two are in different ones, the times of transactions and locks are hours beside
those of the database itself. What is compared with them has to be told by the same clock.
"""

from __future__ import annotations

from sqlalchemy.engine import Connection

from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient

_ZONES_DIFFER_BY_MS = 15 * 60_000
"""Or a multiple of it; what is less is the time that the two looks take."""


class MetastoreClock:
    """Tells the metastore's time, in transactions of its database.

    :param client: of that metastore; asked once, and only where the two may differ.
    """

    def __init__(self, client: AcidMetastoreClient, database: MetastoreDatabase) -> None:
        self._client = client
        self._database = database
        self._ahead_ms: int | None = None if database.is_mysql else 0

    def now_ms(self, connection: Connection) -> int:
        """Milliseconds since 1970, by the clock by which the metastore notes its transactions and locks."""
        now_ms = self._database.now_ms(connection)
        if self._ahead_ms is None:
            apart_ms = self._client.server_now_ms() - now_ms
            self._ahead_ms = round(apart_ms / _ZONES_DIFFER_BY_MS) * _ZONES_DIFFER_BY_MS
        return now_ms + self._ahead_ms
