"""The full crash matrix: metastore, kind of compaction, step and successor, on one table after the other.

Takes most of an hour; ``tools/crash-table`` makes docs/crash-matrix.log and the table in docs/reliability.md of what it
did.
"""

from __future__ import annotations

import itertools

import pytest

from tests.crash.metastores import (
    HIVE_3,
    HIVE_3_ON_MARIADB,
    HIVE_4,
    HIVE_4_1,
    HIVE_4_2,
    HIVE_4_ALPHA,
    CrashMetastore,
    FixtureName,
    on_its_own_worker,
)
from tests.harness.crash_case import Kind, check_another_run, check_another_run_after_reaper, check_next_try
from tests.harness.crash_record import Successor
from tests.harness.metastore_server import REAPER_SECONDS

METASTORES = (HIVE_4, HIVE_4_ALPHA, HIVE_4_1, HIVE_4_2, HIVE_3, HIVE_3_ON_MARIADB)
TABLES = [
    FixtureName("4.0.1", "acid_plain"),
    FixtureName("4.0.1", "acid_abort"),
    FixtureName("4.0.1", "acid_buck"),
    FixtureName("4.0.1", "acid_part", "p=x/q=1"),
    FixtureName("3.1.3", "a_merge"),
    FixtureName("3.1.3", "a_abort"),
]


def on_tables_in_turn(offset: int) -> pytest.MarkDecorator:
    """Every metastore, kind and step, each on the table whose turn it is.

    :param offset: of the successor, so that each of them meets other tables.
    """
    table = itertools.islice(itertools.cycle(TABLES), offset, None)
    parameters = [
        on_its_own_worker(metastore, kind, step, turn, id=f"-{kind.value}-{step}-{turn}")
        for metastore in METASTORES
        for kind in metastore.kinds
        for step, turn in zip(kind.steps, table, strict=False)
    ]
    return pytest.mark.parametrize(("metastore", "kind", "step", "table"), parameters)


@on_tables_in_turn(0)
def test_next_try(
    request: pytest.FixtureRequest, metastore: CrashMetastore, table: FixtureName, kind: Kind, step: str
) -> None:
    check_next_try(metastore.case(request, table, kind, step))


@on_tables_in_turn(1)
def test_another_run(
    request: pytest.FixtureRequest, metastore: CrashMetastore, table: FixtureName, kind: Kind, step: str
) -> None:
    check_another_run(metastore.case(request, table, kind, step))


@on_tables_in_turn(2)
def test_another_run_after_reaper(
    request: pytest.FixtureRequest, metastore: CrashMetastore, table: FixtureName, kind: Kind, step: str
) -> None:
    check_another_run_after_reaper(metastore.case(request, table, kind, step, reaping=True), REAPER_SECONDS)


@on_tables_in_turn(3)
def test_next_try_beside_reaper(
    request: pytest.FixtureRequest, metastore: CrashMetastore, table: FixtureName, kind: Kind, step: str
) -> None:
    check_next_try(metastore.case(request, table, kind, step, reaping=True), Successor.BESIDE_REAPER)
