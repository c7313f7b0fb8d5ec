"""Columns that were given a type that values of the old one cannot be written as: their files keep the old type.

Hive converts each value when it reads it, before a compaction and after.
"""

from __future__ import annotations

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.hive_engine_program import HIVE_3
from tests.harness.the_hive_4 import THE_HIVE_4
from tests.judge.compactors import compactor_for
from tests.judge.conftest import StartHive
from tests.judge.readings import check_every_way, read
from tests.judge.statements import run
from tests.judge.table_kind import make_acid_table

CHANGES = {
    "to_text": ("string", "varchar(3)"),
    "shorter": ("varchar(9)", "varchar(4)"),
    "number": ("int", "string"),
    "fraction": ("decimal(10,4)", "decimal(10,2)"),
    "imprecise": ("float", "double"),
    "day": ("date", "string"),
    "padded": ("char(3)", "char(5)"),
}
TEXTS = ("to_text", "shorter")
"""Those of which files of the new type may be there, too."""

TABLE = "kept_types.{}"
VALUES = (
    "(1, 'abcdef', 'ghijklm', -7, 1.2345, cast(0.1 as float), date '2024-02-29', 'ab')",
    "(2, '', 'n', 2147483647, -0.0049, cast(-2.5 as float), date '1969-12-31', 'xyz')",
    "(3, null, null, null, null, null, null, null)",
)


@pytest.mark.parametrize(
    "version", [pytest.param(version, marks=pytest.mark.xdist_group(version)) for version in (HIVE_3, THE_HIVE_4)]
)
@pytest.mark.parametrize("columns", [tuple(CHANGES), TEXTS], ids=["all columns", "texts, with new files"])
def test_hive_reads_the_same_of_columns_that_became_another_type(
    start_hive: StartHive, version: str, columns: tuple[str, ...]
) -> None:
    hive, are_texts = start_hive(version), columns == TEXTS
    name = "texts" if are_texts else "all_columns"
    table, entity = TABLE.format(name), Entity("kept_types", name)
    typed = ", ".join(f"{column} {was}" for column, (was, _) in CHANGES.items())
    make_acid_table(hive, table, f"(id int, {typed})")
    for values in VALUES:
        run(hive, table, f"insert into {{t}} values {values}")
    for column in columns:
        run(hive, table, f"alter table {{t}} change column {column} {column} {CHANGES[column][1]}")
    with compactor_for(hive, "kept_types") as compactor:
        if are_texts:
            run(hive, table, "insert into {t} (id, to_text, shorter) values (4, 'opq', 'rstu')")
            run(hive, table, "update {t} set imprecise = 0.5 where id = 1")
            before = read(hive, table, "row__id, *")
            assert compactor.compact(entity, CompactionType.MINOR).targets
            compactor.clean(entity)
            check_every_way(hive, table, "row__id, *", before, "after a minor")
        run(hive, table, "delete from {t} where id = 2")
        before = read(hive, table, "row__id, *")
        assert compactor.compact(entity, CompactionType.MAJOR).targets
        compactor.clean(entity)
    check_every_way(hive, table, "row__id, *", before, "after a major")
    assert len(before) == (3 if are_texts else 2)
    assert "abcdef" not in "".join(before)
