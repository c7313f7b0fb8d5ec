"""Hive finds the same rows, with and without predicates, in a file of copied and rewritten stripes as before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyorc
import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.plan.plan import CompactionType, CopiedStripes, OrcOptions
from tests.harness.every_case import some_of
from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import HIVE_3, HIVE_4
from tests.judge.compactors import SETTINGS, compactor_for
from tests.judge.conftest import StartHive
from tests.judge.readings import check_bases, check_every_way, read
from tests.judge.table_kind import make_acid_table

DATABASE = "stripes"
TABLE = f"{DATABASE}.copied"
ROWS = 200
DELTAS = 5

COLUMNS = "(id int, s string, n decimal(10,2), t timestamp, d double, c char(12), f boolean)"

_ROW = (
    "select {first} + pos, concat('text ', lpad(cast({first} + pos as string), 5, '0')), "
    "cast(({first} + pos) / 4 as decimal(10,2)), cast(concat('2020-01-0', {number}, ' 00:00:', lpad(cast(pos % 60 as "
    "string), 2, '0'), '.25') as timestamp), case when {number} = 4 and pos % 50 = 7 then cast('NaN' as double) else "
    "({first} + pos) / 2.0D end, concat('c', cast({first} + pos as string)), pos % 2 = 0 "
    "from (select 1 as one) x lateral view posexplode(split(space({rows} - 1), ' ')) v as pos, w"
)

PREDICATES = (
    *(f"id = {number}" for number in (0, 199, 200, 407, 999, 1000)),
    "id between 390 and 410",
    "id > 995",
    *(f"s = 'text {number:05}'" for number in (0, 407, 999, 1000)),
    "s >= 'text 00990'",
    *(f"n = {number}" for number in ("1.25", "101.75", "249.75", "250.00")),
    "n > 249.0",
    *(f"t = '2020-01-0{number} 00:00:07.25'" for number in (1, 3, 5, 6)),
    "t < '2020-01-01 00:00:01'",
    *(f"d = {number}" for number in ("101.0D", "203.5D", "499.5D", "500.0D")),
    "d <> 203.5D",
    "d > 498.0D",
    "c = 'c407'",
    "f",
    "id is null",
    "s = 'changed'",
)

USED_WAYS = ("row mode, fetch task", "vectorised, job")
WITH_NAN = [(predicate, way) for predicate in PREDICATES for way in USED_WAYS if predicate.startswith("d ")]


STRIPES = {
    "by one task": (OrcOptions.slice_bytes, [ROWS, ROWS, 2 * ROWS - 2, ROWS, 1]),
    "in slices": (1, [ROWS, ROWS, ROWS - 2, ROWS, ROWS, 1]),
}
CASES = [
    pytest.param(version, *STRIPES[how], marks=pytest.mark.xdist_group(version), id=f"{version}-{how}")
    for version, how in some_of([(version, how) for version in (HIVE_3, HIVE_4) for how in STRIPES], 1, 2)
]


@pytest.mark.parametrize(("version", "slice_bytes", "rows_of_stripes"), CASES)
def test_hive_skips_no_row_of_copied_or_rewritten_stripes(
    start_hive: StartHive, version: str, slice_bytes: int, rows_of_stripes: list[int]
) -> None:
    """Deltas of one stripe each: of the third two rows are deleted, the fourth holds NaN, the others are copied.

    By limits of NaN Hive misses rows of deltas; those it may find afterwards.
    """
    hive = start_hive(version)
    make_acid_table(hive, TABLE, COLUMNS)
    for number in range(DELTAS):
        row = _ROW.format(first=number * ROWS, number=number + 1, rows=ROWS)
        hive.execute(f"insert into {TABLE} {row}")
    hive.execute(f"delete from {TABLE} where id = 407", f"update {TABLE} set s = 'changed' where id = 411")
    columns = "row__id, *"
    written = read(hive, TABLE, columns)
    hive.execute("set hive.optimize.index.filter=false")
    expected = matches(hive)
    hive.execute("set hive.optimize.index.filter=true")
    found = matches(hive)
    assert {key for key in found if found[key] != expected[key]} <= set(WITH_NAN)

    settings = replace(SETTINGS, stripe_copy=CopiedStripes.ALWAYS, slice_bytes=slice_bytes)
    entity = Entity(*TABLE.split("."))
    with compactor_for(hive, DATABASE, settings) as compactor:
        compacted = compactor.compact(entity, CompactionType.MAJOR)
        compactor.clean(entity)

    assert stripe_rows(hive) == rows_of_stripes
    check_every_way(hive, TABLE, columns, written, f"after {compacted}")
    check_bases(hive, TABLE, f"after {compacted}")
    assert matches(hive) == expected


def matches(hive: HiveEngine) -> dict[tuple[str, str], list[str]]:
    """What every predicate finds, in two ways of reading."""
    return {
        (predicate, way): read(hive, f"{TABLE} where {predicate}", "row__id, *", way)
        for predicate in PREDICATES
        for way in USED_WAYS
    }


def stripe_rows(hive: HiveEngine) -> list[int]:
    """Rows of the base's stripes, bucket after bucket."""
    database, _, name = TABLE.partition(".")
    paths = sorted(Path(hive.metastore.warehouse, f"{database}.db", name).glob("base_*/bucket_*"))
    counted: list[int] = []
    for path in paths:
        with path.open("rb") as file:
            reader = pyorc.Reader(file)
            counted += [len(reader.read_stripe(number)) for number in range(reader.num_of_stripes)]
    return counted
