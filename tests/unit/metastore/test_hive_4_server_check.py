"""Which Hive 4 metastores are refused for their settings, and of which a warning is logged."""

from __future__ import annotations

import logging
from typing import cast

import pytest

from airflow_provider_acid.exceptions import ConfigurationError, MetastoreVersionError
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.hive4 import server_check
from airflow_provider_acid.metastore.hive4.server_check import check_server
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient


class Database:
    """A metastore's, with such columns in its queue."""

    def __init__(self, *columns: str) -> None:
        self.columns = columns

    def table(self, name: str, required: tuple[str, ...]) -> None:
        for column in required:
            if column not in self.columns:
                raise MetastoreVersionError(name, f"lacks {column}", "use another")


DATABASE = cast(MetastoreDatabase, Database("CQ_ID", "CQ_TXN_ID", "CQ_RETRY_RETENTION", "CQ_COMMIT_TIME"))
HOUSEKEEPING, CLEANER, BY_WRITE_ID, OF_ABORTS = (
    "metastore.housekeeping.threads.on",
    "metastore.compactor.cleaner.on",
    "metastore.txn.use.minhistorywriteid",
    "metastore.compactor.clean.aborts.using.cleaner",
)
HIVE_4_0 = {HOUSEKEEPING: "true", CLEANER: "false", BY_WRITE_ID: "false", OF_ABORTS: "true"}
HIVE_4_1 = HIVE_4_0 | {CLEANER: "true", OF_ABORTS: "false"}
HIVE_4_2 = HIVE_4_1 | {BY_WRITE_ID: "TRUE "}


class Server:
    """A metastore with settings."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.config_value = settings.__getitem__


@pytest.fixture(autouse=True)
def rights(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the login lacks."""
    missing: list[str] = []
    monkeypatch.setattr(server_check, "missing_rights", lambda database, tables: missing)
    return missing


def check(settings: dict[str, str], database: MetastoreDatabase | None, **elsewhere: bool) -> None:
    check_server(cast(AcidMetastoreClient, Server(settings)), database, **elsewhere)


@pytest.mark.parametrize(
    ("settings", "database", "warning"),
    [
        (HIVE_4_0, None, ""),
        (HIVE_4_0 | {BY_WRITE_ID: "true"}, None, ""),
        (HIVE_4_1, None, f"{CLEANER} is true"),
        (HIVE_4_1, DATABASE, ""),
        (HIVE_4_2, DATABASE, ""),
        (HIVE_4_2 | {OF_ABORTS: "true"}, DATABASE, f"{CLEANER} and {OF_ABORTS} are true"),
        (HIVE_4_2 | {HOUSEKEEPING: "false"}, DATABASE, f"{HOUSEKEEPING} is not true"),
        (HIVE_4_0 | {HOUSEKEEPING: ""}, None, f"{HOUSEKEEPING} is not true"),
    ],
)
def test_what_only_delays_or_disturbs_is_logged(
    settings: dict[str, str], database: MetastoreDatabase | None, warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        check(settings, database)
    assert len(caplog.messages) == bool(warning)
    assert warning in "".join(caplog.messages)


def test_housekeeping_may_be_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    check(HIVE_4_0 | {HOUSEKEEPING: "false"}, None, housekeeping_elsewhere=True)
    assert caplog.messages == []


def test_a_cleaner_that_waits_for_registered_readers_only_is_refused_without_the_database() -> None:
    with pytest.raises(ConfigurationError, match=f"{CLEANER}: is true .*{BY_WRITE_ID}: .*metastore_db_conn_id"):
        check(HIVE_4_2, None)


def test_a_login_that_cannot_keep_rows_from_that_cleaner_is_refused(rights: list[str]) -> None:
    rights.append("UPDATE on COMPACTION_QUEUE")
    with pytest.raises(ConfigurationError, match=r"lacks UPDATE on COMPACTION_QUEUE.*airflow-acid grants postgresql"):
        check(HIVE_4_2, DATABASE)


def test_a_database_without_the_column_that_keeps_rows_from_that_cleaner_is_refused_at_once() -> None:
    older = cast(MetastoreDatabase, Database("CQ_ID", "CQ_TXN_ID"))
    with pytest.raises(MetastoreVersionError, match="COMPACTION_QUEUE: lacks CQ_RETRY_RETENTION"):
        check(HIVE_4_0, older)
