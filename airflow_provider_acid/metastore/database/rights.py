"""What a login may do in a metastore's database, found out by statements that change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sqlalchemy import delete, false, insert, select, update
from sqlalchemy.sql import Executable

from airflow_provider_acid.exceptions import MetastoreError, MetastoreUnavailableError
from airflow_provider_acid.metastore.database.database import HiveTable, MetastoreDatabase

Statement = Callable[[HiveTable], Executable]


def _select(table: HiveTable) -> Executable:
    return select(*table.columns.values()).where(false())


def _insert(table: HiveTable) -> Executable:
    return insert(table.table).from_select([column.name for column in table.table.columns], _select(table))  # type: ignore[arg-type]  # the select above


def _update(table: HiveTable) -> Executable:
    column = next(iter(table.columns.values()))
    return update(table.table).where(false()).values({column.name: column})


def _delete(table: HiveTable) -> Executable:
    return delete(table.table).where(false())


def _lock(table: HiveTable) -> Executable:
    return select(*table.columns.values()).where(false()).with_for_update()


_RIGHTS: dict[str, tuple[tuple[str, Statement], ...]] = {
    "COMPACTION_QUEUE": (("SELECT", _select), ("UPDATE", _update), ("DELETE", _delete)),
    "COMPLETED_COMPACTIONS": (("SELECT", _select), ("INSERT", _insert)),
    "COMPLETED_TXN_COMPONENTS": (("SELECT", _select), ("DELETE", _delete)),
    "TXN_COMPONENTS": (("SELECT", _select), ("DELETE", _delete)),
    "TXNS": (("SELECT", _select),),
    **dict.fromkeys(("DBS", "TBLS", "PARTITIONS", "SDS"), (("SELECT", _select),)),
    "AUX_TABLE": (("SELECT … FOR UPDATE", _lock),),
}
"""What this package does with each table."""


def missing_rights(database: MetastoreDatabase, tables: Iterable[str] = _RIGHTS) -> list[str]:
    """The rights that the login lacks, each as ``DELETE on TXN_COMPONENTS``.

    :param tables: which are looked at; all of which this package needs any.
    :raises MetastoreUnavailableError: the database does not answer.
    :raises MetastoreVersionError: it is not a metastore's.
    """
    return [
        f"{right} on {name}"
        for name, right, statement in _statements(database, tables)
        if not _may(database, name, statement)
    ]


def _statements(database: MetastoreDatabase, tables: Iterable[str]) -> Iterator[tuple[str, str, Executable]]:
    for name in tables:
        table = database.table(name)
        for right, statement in _RIGHTS[name]:
            yield name, right, statement(table)


def _may(database: MetastoreDatabase, name: str, statement: Executable) -> bool:
    try:
        database.read(f"rights on {name}", lambda connection: connection.execute(statement))
    except MetastoreUnavailableError:
        raise
    except MetastoreError:
        return False
    return True
