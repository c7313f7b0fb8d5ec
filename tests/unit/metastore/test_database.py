"""The metastore's database: what its errors mean, what is never shown, how long it is waited for."""

from __future__ import annotations

import builtins
import socket
from collections.abc import Callable
from typing import Any

import psycopg2
import pymysql
import pytest
from sqlalchemy import Column, String
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, ProgrammingError

from airflow_provider_acid.exceptions import ConfigurationError, MetastoreError, MetastoreUnavailableError
from airflow_provider_acid.metastore.database import database as database_module
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.database.sql_errors import Trouble, metastore_error, trouble_of

MYSQL = make_url("mysql+pymysql://").get_dialect()()
POSTGRESQL = make_url("postgresql+psycopg2://").get_dialect()()


class PostgresError(psycopg2.OperationalError):
    """An error with the SQLSTATE that only a server can put into the driver's own."""

    def __init__(self, pgcode: str | None, text: str = "words") -> None:
        super().__init__(text)
        self.state = pgcode

    @property
    def pgcode(self) -> str | None:  # type: ignore[override]  # the driver's is read-only, too
        return self.state


def wrapped(original: Exception, kind: type[DBAPIError] = OperationalError) -> DBAPIError:
    return kind("SELECT 1", {}, original)


@pytest.mark.parametrize(
    ("original", "trouble"),
    [
        (PostgresError(None, "connection refused"), Trouble.UNREACHABLE),
        (PostgresError("57P01"), Trouble.UNREACHABLE),
        (PostgresError("08006"), Trouble.UNREACHABLE),
        (PostgresError("53300"), Trouble.UNREACHABLE),
        (PostgresError("55P03"), Trouble.BUSY),
        (PostgresError("40P01"), Trouble.BUSY),
        (PostgresError(None, 'FATAL: password authentication failed for user "x"'), Trouble.REJECTED),
        (PostgresError(None, 'FATAL: database "x" does not exist'), Trouble.REJECTED),
        (PostgresError("42501"), Trouble.DENIED),
        (PostgresError("42P01"), Trouble.OTHER),
        (pymysql.err.OperationalError(2003, "Can't connect"), Trouble.UNREACHABLE),
        (pymysql.err.OperationalError(2013, "Lost connection"), Trouble.UNREACHABLE),
        (pymysql.err.OperationalError(1205, "Lock wait timeout exceeded"), Trouble.BUSY),
        (pymysql.err.OperationalError(1213, "Deadlock found"), Trouble.BUSY),
        (pymysql.err.OperationalError(1045, "Access denied"), Trouble.REJECTED),
        (pymysql.err.OperationalError(1142, "DELETE command denied"), Trouble.DENIED),
        (pymysql.err.ProgrammingError(1146, "Table doesn't exist"), Trouble.OTHER),
    ],
)
def test_errors_are_told_apart_by_what_helps(original: Exception, trouble: Trouble) -> None:
    assert trouble_of(wrapped(original)) is trouble
    error = metastore_error(wrapped(original), "table X", None)
    is_temporary = trouble in (Trouble.UNREACHABLE, Trouble.BUSY)
    assert isinstance(error, MetastoreUnavailableError) is is_temporary
    assert "grants" in str(error) or trouble is not Trouble.DENIED


def test_an_error_of_the_statement_is_no_outage() -> None:
    assert trouble_of(ArgumentError("no")) is Trouble.OTHER
    assert trouble_of(wrapped(psycopg2.ProgrammingError("syntax"), ProgrammingError)) is Trouble.OTHER


def test_an_error_tells_neither_statement_nor_password() -> None:
    error = metastore_error(wrapped(PostgresError(None, "dsn: password=sesame")), "table X", "sesame")
    assert "sesame" not in str(error)
    assert "SELECT" not in str(error)


@pytest.mark.parametrize(
    ("url", "driver", "package"),
    [
        ("postgresql+psycopg2://a:sesame@h/d", "psycopg2", "psycopg2-binary"),
        ("mysql+pymysql://a:sesame@h/d", "pymysql", "pymysql"),
    ],
)
def test_a_driver_that_is_not_installed_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, url: str, driver: str, package: str
) -> None:
    load = builtins.__import__

    def without_driver(name: str, *arguments: Any, **options: Any) -> Any:
        if name == driver:
            raise ImportError(name)
        return load(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_driver)
    with pytest.raises(ConfigurationError, match=f"pip install {package}$|pip install {package}\\.") as error:
        MetastoreDatabase(url)
    assert "sesame" not in str(error.value)


@pytest.mark.parametrize("url", ["sqlite://", "oracle://a:sesame@h/d"])
def test_another_kind_of_database_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="is not supported"):
        MetastoreDatabase(url)


@pytest.mark.parametrize(
    "url", ["postgresql+psycopg2://a:sesame@127.0.0.1:{}/d", "mysql+pymysql://a:sesame@127.0.0.1:{}/d"]
)
def test_a_database_that_does_not_answer_is_named_without_its_password(url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    database = MetastoreDatabase(url.format(port), patience_seconds=0)
    calls: list[Callable[[str, Callable[[object], None]], None]] = [database.read, database.write]
    for call in calls:
        with pytest.raises(MetastoreUnavailableError, match="database d on 127.0.0.1") as error:
            call("table X", lambda connection: None)
        assert "sesame" not in f"{error.value!r} {database!r} {vars(error.value)}"


def test_mysql_compares_names_byte_by_byte() -> None:
    condition = MetastoreDatabase("mysql+pymysql://h/d").equals(Column("P", String), "p=Ü ")
    text = str(condition.compile(dialect=MYSQL, compile_kwargs={"literal_binds": True}))
    assert "hex(CAST(`P` AS CHAR CHARACTER SET utf8mb4)) = '703DC39C20'" in text
    plain = MetastoreDatabase("postgresql+psycopg2://h/d").equals(Column("p", String), None)
    assert str(plain.compile(dialect=POSTGRESQL)) == "p IS NULL"


def test_texts_that_mysql_takes_for_equal_are_told_apart_by_their_bytes() -> None:
    column = Column("P", String)
    on_mysql = MetastoreDatabase("mysql+pymysql://h/d").bytes_of(column)
    assert str(on_mysql.compile(dialect=MYSQL)) == "hex(CAST(`P` AS CHAR CHARACTER SET utf8mb4))"
    elsewhere = MetastoreDatabase("postgresql+psycopg2://h/d").bytes_of(column)
    assert str(elsewhere.compile(dialect=POSTGRESQL)) == '"P"'


def test_an_error_of_ours_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    database = MetastoreDatabase("postgresql+psycopg2://h/d")

    def refuse(subject: str) -> None:
        raise MetastoreError(subject, "no", "none")

    monkeypatch.setattr(database, "_connect", refuse)
    with pytest.raises(MetastoreError, match="X: no"):
        database.read("X", lambda connection: None)


@pytest.mark.parametrize("call", ["read", "write"])
def test_a_connection_that_fails_is_tried_again_by_reads_and_writes(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    database = MetastoreDatabase("postgresql+psycopg2://h/d")
    failures = [MetastoreUnavailableError("X", "away", "wait"), MetastoreUnavailableError("X", "away", "wait")]
    monkeypatch.setattr(database_module, "PAUSE_SECONDS", 0.0)

    def connect(subject: str) -> None:
        raise failures.pop() if failures else MetastoreError(subject, "is here again", "none")

    monkeypatch.setattr(database, "_connect", connect)
    with pytest.raises(MetastoreError, match="X: is here again"):
        getattr(database, call)("X", lambda connection: None)
