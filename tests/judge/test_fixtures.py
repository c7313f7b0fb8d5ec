"""Hive 4 reads the tables of ``tests/fixtures`` after this project compacted them as their writer read them before.

Those of Hive 3 are what a site has after its upgrade: converted tables, raw files of LOAD DATA, streaming deltas and
deletes in foreign bucket files among them. Hive's own compactions of the same tables left the same rows, but for its
known errors (the raw files after a minor, the aborted row of the open streaming table).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import HIVE_4
from tests.harness.hive_tables import VERSIONS, HiveFixture, fixture_names, register
from tests.harness.thrift_admin import ThriftAdmin
from tests.judge.compactors import compactor_for
from tests.judge.conftest import StartHive
from tests.judge.readings import read

WAYS = ("row mode, fetch task", "vectorised, job")
CASES = [
    pytest.param(version, name, id=f"hive_4-{version}-{name}", marks=pytest.mark.xdist_group(HIVE_4))
    for version in VERSIONS
    for name in fixture_names(version)
]


@pytest.mark.parametrize(("version", "name"), CASES)
def test_hive_4_reads_a_compacted_table_as_its_writer_did(start_hive: StartHive, version: str, name: str) -> None:
    hive = start_hive(HIVE_4)
    database = f"fixtures_{version[0]}"
    table = register(hive.metastore, name, version, database)
    hive.execute(f"create database if not exists {database}")
    select = _select_list(table.fixture)
    expected = sorted(_as_printed(row) for row in table.rows)
    with ending(hive, table.open_transactions.values()), compactor_for(hive, database) as compactor:
        for wanted in CompactionType.MINOR, CompactionType.MAJOR:
            done = []
            for partition in table.partitions or (None,):
                done.append(compactor.compact(Entity(database, name, partition), wanted))
                if not table.open_transactions:
                    compactor.clean(Entity(database, name, partition))
            for way in WAYS:
                found = sorted(_as_printed(_parsed(line)) for line in read(hive, f"{database}.{name}", select, way))
                assert found == expected, f"{way} after {done}"


@contextmanager
def ending(hive: HiveEngine, transactions: Iterable[int]) -> Iterator[None]:
    """Aborts transactions afterwards; open, they would hold back every cleaner."""
    try:
        yield
    finally:
        with ThriftAdmin(hive.metastore.host, hive.metastore.port) as admin:
            for transaction in transactions:
                admin.abort(transaction)


def _select_list(fixture: HiveFixture) -> str:
    columns = {**fixture.definition.columns, **fixture.definition.partition_keys}
    plain = [f"hex({name})" if kind == "binary" else name for name, kind in columns.items()]
    return ", ".join([*(["row__id"] if fixture.full_acid else []), *plain])


def _parsed(line: str) -> dict[str, object]:
    def value(text: str) -> object:
        if text == "NULL":
            return None
        return json.loads(text) if text[:1] in ("[", "{") else text

    return {str(place): value(text) for place, text in enumerate(line.split("\t"))}


def _as_printed(row: Mapping[str, object]) -> str:
    """The values in their order, whatever the columns are called; jobs print ``array(null)`` as NULL."""
    values = [None if value == [None] else value for name, value in row.items() if name != "file"]
    return json.dumps(values, sort_keys=True, ensure_ascii=False)
