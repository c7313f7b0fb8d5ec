"""What a kind of table is, and the SQL that kinds share."""

from __future__ import annotations

from dataclasses import dataclass

from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import HIVE_3
from tests.harness.the_hive_4 import THE_HIVE_4
from tests.judge.statements import Settings, Statement

BOTH = (HIVE_3, THE_HIVE_4)
ID_AND_TEXT = "(id int, s string)"
ACID = "stored as orc tblproperties('transactional'='true')"
PLAIN_FILES = "stored as orc tblproperties('transactional'='false')"
CONVERT = "alter table {t} set tblproperties('transactional'='true')"
LEFT_TO_US = "alter table {t} set tblproperties('no_auto_compaction'='true')"
"""Hive 3's own Initiator runs, and a request of its would stand in the way of ours."""


def make_acid_table(hive: HiveEngine, table: str, columns: str) -> None:
    """A new full-ACID table, and its database.

    :param table: ``database.table``.
    :param columns: what stands between the table's name and its format.
    """
    hive.execute(
        f"create database if not exists {table.partition('.')[0]}",
        f"drop table if exists {table}",
        f"create table {table} {columns} {ACID}",
        LEFT_TO_US.format(t=table),
    )


@dataclass(frozen=True)
class TableKind:
    """One kind of table.

    :param name: of the kind, and of the table.
    :param write: what makes the table.
    :param on_top: what is done to it after its first compaction.
    :param columns: what is read beside the row id.
    :param full_acid: whether its rows have ids.
    :param versions: Hive versions that know the kind.
    :param settings: of the session in which it is written and read.
    :param proves: scenarios of Hive's own tests (``docs/hive-scenarios.md``).
    """

    name: str
    write: tuple[Statement, ...]
    on_top: tuple[Statement, ...]
    columns: str = "*"
    full_acid: bool = True
    versions: tuple[str, ...] = BOTH
    settings: Settings = ()
    proves: str = ""

    @property
    def read(self) -> str:
        """The select list."""
        return f"row__id, {self.columns}" if self.full_acid else self.columns


def changes(partition: str = "") -> tuple[Statement, ...]:
    """INSERT, UPDATE, DELETE and MERGE on a table of ``id int, s string`` and at most one partition column.

    :param partition: a literal of that column.
    """
    last = f", {partition}" if partition else ""
    into = "insert into {t} " + ("partition(p) " if partition else "")
    return (
        f"{into}values (101, 'top'{last}), (102, 'gone'{last}), (103, 'kept'{last})",
        "update {t} set s = concat(s, '^') where id in (1, 3, 101)",
        "delete from {t} where id in (2, 102)",
        "merge into {t} t using (select 4 as id union all select 104 as id union all select 5 as id) x on t.id = x.id "
        "when matched and x.id = 5 then delete when matched then update set s = 'merged' "
        f"when not matched then insert values (x.id, 'new'{last})",
    )


def rows(first: int, last: int, *more: str) -> str:
    """``(1, 'a1'), (2, 'a2')`` …, each with further literals."""
    return ", ".join("({})".format(", ".join((str(n), f"'a{n}'", *more))) for n in range(first, last + 1))


def table(definition: str, *writes: Statement, stored: str = ACID) -> tuple[Statement, ...]:
    """CREATE TABLE and what is written into it."""
    return (f"create table {{t}} {definition} {stored}", LEFT_TO_US, *writes)
