"""The database behind a metastore: connections, its own spelling of names, its clock, its outages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Column, MetaData, Table, and_, cast, create_engine, event, func, inspect, text
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool
from sqlalchemy.sql.elements import ColumnElement

from airflow_provider_acid.exceptions import (
    ConfigurationError,
    MetastoreError,
    MetastoreUnavailableError,
    MetastoreVersionError,
)
from airflow_provider_acid.metastore.database.sql_errors import Trouble, metastore_error, trouble_of

T = TypeVar("T")

PATIENCE_SECONDS = 90.0
"""How long an outage may last before a read, or connecting for a write, is given up."""

BUSY_ATTEMPTS = 6
"""How often a transaction is tried that lost against somebody else's lock, each time after twice the pause.

A pass of Hive's Initiator holds its mutex for seconds.
"""

PAUSE_SECONDS = 1.0
CONNECT_SECONDS = 10
LOCK_WAIT_SECONDS = 20
ANSWER_SECONDS = 60

_CONNECT_ARGUMENTS: Mapping[str, Mapping[str, object]] = {
    "psycopg2": {
        "connect_timeout": CONNECT_SECONDS,
        "keepalives_idle": ANSWER_SECONDS // 2,
        "tcp_user_timeout": ANSWER_SECONDS * 1000,
    },
    "psycopg": {"connect_timeout": CONNECT_SECONDS},
    "pymysql": {
        "connect_timeout": CONNECT_SECONDS,
        "read_timeout": ANSWER_SECONDS,
        "write_timeout": ANSWER_SECONDS,
    },
    "mysqldb": {"connect_timeout": CONNECT_SECONDS},
}
"""Limits by driver, where the URL names none."""

_SESSION_SETTINGS = {
    "postgresql": (f"SET lock_timeout = '{LOCK_WAIT_SECONDS}s'",),
    "mysql": (f"SET SESSION innodb_lock_wait_timeout = {LOCK_WAIT_SECONDS}", "SET SESSION time_zone = '+00:00'"),
}
_CLOCKS = {
    "postgresql": "SELECT CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)",
    "mysql": "SELECT CAST(FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000) AS SIGNED)",
}
"""Milliseconds since 1970, by dialect."""

_DRIVER_PACKAGES = {"psycopg2": "psycopg2-binary", "mysqldb": "mysqlclient"}


@dataclass(frozen=True)
class HiveTable:
    """A table of the metastore's schema.

    :param table: as reflected, with the database's own spelling.
    :param columns: by the upper-case name under which Hive's documents know them.
    """

    table: Table
    columns: Mapping[str, Column[Any]]

    def __getitem__(self, name: str) -> Column[Any]:
        return self.columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.columns


class MetastoreDatabase:
    """Transactions on a metastore's database. May be shared by threads; each transaction has a connection of its own.

    :param url: a SQLAlchemy URL of a PostgreSQL or MySQL/MariaDB; it is shown without its password.
    :param patience_seconds: how long an outage is waited for.
    :raises ConfigurationError: the URL names another kind of database, or its driver is not installed.
    """

    def __init__(self, url: str | URL, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        parsed = make_url(url)
        self._secret = str(parsed.password) if parsed.password else None
        self._patience_seconds = patience_seconds
        self._engine = _engine(parsed)
        self._tables: dict[str, HiveTable] = {}
        self._reflecting = threading.Lock()
        self.subject = f"metastore database {parsed.database or ''} on {parsed.host or 'localhost'}"

    def __repr__(self) -> str:
        return f"MetastoreDatabase({self.subject!r})"

    @property
    def is_mysql(self) -> bool:
        """Whether it is a MySQL or MariaDB."""
        return self._engine.dialect.name in ("mysql", "mariadb")

    def table(self, name: str, required: Iterable[str] = ()) -> HiveTable:
        """A table of the metastore's schema, found whatever case the database spells it in.

        :param name: in upper case.
        :param required: columns that must be there, in upper case.
        :raises MetastoreVersionError: the table or a column is not there, or two tables differ only by case.
        """
        with self._reflecting:
            if name not in self._tables:
                self._tables[name] = self.read(f"table {name}", lambda connection: self._reflect(connection, name))
            table = self._tables[name]
        missing = [column for column in required if column not in table]
        if missing:
            raise MetastoreVersionError(
                f"{self.subject}, table {name}",
                f"has no column {missing[0]}",
                "use a Hive 3.1 or 4 metastore, and name its own database by metastore_db_conn_id",
            )
        return table

    def read(self, subject: str, work: Callable[[Connection], T]) -> T:
        """Read in one transaction; begun anew until it gets through or patience ends.

        :param subject: what is read, for errors.
        :param work: may be called several times, with a connection that is in a transaction.
        :raises MetastoreUnavailableError: the database does not answer.
        :raises MetastoreError: it answers with an error.
        """

        def once() -> T:
            with self._connect(subject) as connection:
                return self._transact(subject, connection, work)

        return self._patiently(subject, once)

    def write(self, subject: str, work: Callable[[Connection], T]) -> T:
        """Write in one transaction, which is waited for but, once begun, not repeated unless it was rolled back.

        :param work: is called again where the transaction lost against somebody else's lock.
        :raises MetastoreUnavailableError: the database does not answer; where the answer to the commit got lost, the
            transaction may have been carried out, and the caller has to look.
        :raises MetastoreError: the database answers with an error; nothing was changed.
        """
        with self._patiently(subject, lambda: self._connect(subject)) as connection:
            return self._transact(subject, connection, work)

    def now_ms(self, connection: Connection) -> int:
        """The database's clock, in milliseconds since 1970."""
        return int(connection.execute(text(_CLOCKS["mysql" if self.is_mysql else "postgresql"])).scalar_one())

    def equals(self, column: Column[Any], value: str | None) -> ColumnElement[bool]:
        """Whether a column holds exactly this text, or NULL; MySQL by itself ignores case and trailing spaces."""
        if value is None:
            return column.is_(None)
        if not self.is_mysql:
            return column == value
        return and_(column == value, self.bytes_of(column) == value.encode().hex().upper())

    def bytes_of(self, column: Column[Any]) -> ColumnElement[Any]:
        """What differs wherever texts do: on MySQL their bytes as hexadecimal digits, elsewhere the texts."""
        return func.hex(cast(column, mysql.CHAR(charset="utf8mb4"))) if self.is_mysql else column.label(None)

    def _connect(self, subject: str) -> Connection:
        try:
            return self._engine.connect()
        except SQLAlchemyError as error:
            raise self._translated(error, subject) from error

    def _transact(self, subject: str, connection: Connection, work: Callable[[Connection], T]) -> T:
        for attempt in range(1, BUSY_ATTEMPTS + 1):
            try:
                with connection.begin():
                    return work(connection)
            except SQLAlchemyError as error:
                if trouble_of(error) is not Trouble.BUSY or attempt == BUSY_ATTEMPTS:
                    raise self._translated(error, subject) from error
            time.sleep(PAUSE_SECONDS * 2**attempt / 10)
        raise AssertionError("every attempt returns or raises")

    def _translated(self, error: SQLAlchemyError, subject: str) -> MetastoreError:
        return metastore_error(error, f"{subject} ({self.subject})", self._secret)

    def _patiently(self, subject: str, work: Callable[[], T]) -> T:
        deadline = time.monotonic() + self._patience_seconds
        while True:
            try:
                return work()
            except MetastoreUnavailableError:
                if time.monotonic() + PAUSE_SECONDS > deadline:
                    raise
            time.sleep(PAUSE_SECONDS)

    def _reflect(self, connection: Connection, name: str) -> HiveTable:
        found = [known for known in inspect(connection).get_table_names() if known.upper() == name]
        if len(found) != 1:
            raise MetastoreVersionError(
                f"{self.subject}, table {name}",
                f"exists in {len(found)} spellings" if found else "does not exist, or the login may not see it",
                "name the metastore's own database by metastore_db_conn_id, and grant what docs/hive-3.md says",
            )
        table = Table(found[0], MetaData(), autoload_with=connection, resolve_fks=False)
        return HiveTable(table, {column.name.upper(): column for column in table.columns})


def _engine(url: URL) -> Engine:
    dialect = url.get_backend_name()
    if dialect not in ("postgresql", "mysql", "mariadb"):
        raise ConfigurationError(
            f"metastore database of kind {dialect}",
            "is not supported",
            "name a PostgreSQL, MySQL or MariaDB database by metastore_db_conn_id",
        )
    try:
        driver = url.get_dialect().driver
        limits = {name: value for name, value in _CONNECT_ARGUMENTS.get(driver, {}).items() if name not in url.query}
        engine = create_engine(
            url,
            future=True,
            poolclass=NullPool,
            isolation_level="READ COMMITTED",
            hide_parameters=True,
            connect_args=limits,
        )
    except (ImportError, NoSuchModuleError) as error:
        driver = url.get_driver_name()
        raise ConfigurationError(
            f"metastore database on {url.host}",
            f"its driver {driver} is not installed",
            f"run: pip install {_DRIVER_PACKAGES.get(driver, driver)}",
        ) from error
    settings = _SESSION_SETTINGS["postgresql" if dialect == "postgresql" else "mysql"]

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, record: object) -> None:
        cursor = connection.cursor()
        for statement in settings:
            cursor.execute(statement)
        cursor.close()
        connection.commit()

    return engine
