"""What the cases of ``cases/plan`` cannot say about insert-only partitions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.acid.directory import acid_directory
from airflow_provider_acid.acid.write_ids import ValidWriteIdList, WriteIdView
from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.plan.partition import AttemptNames, CompactionPolicy
from airflow_provider_acid.plan.plan import CompactionType, FileFormat
from airflow_provider_acid.plan.planning import choose, plan_compaction
from tests.unit.acid.case_files import case_listing, case_write_ids, cases
from tests.unit.acid.test_planning import partition_of, plan_of

CASES = cases("plan")
ABORTED_ON_HIVE_3 = CASES["M-12-insert-only-aborted-hive-3"]


def test_a_directory_that_was_not_read_as_an_insert_only_one_is_not_planned() -> None:
    write_ids = case_write_ids(ABORTED_ON_HIVE_3, "compactor")
    directory = acid_directory(case_listing(ABORTED_ON_HIVE_3), write_ids, None)
    assert "delta_0000002_0000002_0000" in [delta.path for delta in directory.deltas], "full ACID drops its rows"
    partition = replace(partition_of(ABORTED_ON_HIVE_3), directory=directory)
    with pytest.raises(UnsupportedTableError, match="holds rows of aborted write ids"):
        plan_compaction(partition, AttemptNames("a1", "_a1", 0), CompactionType.MAJOR, "asked for")


@pytest.mark.parametrize("view", WriteIdView)
def test_on_hive_3_an_aborted_directory_of_an_insert_only_table_is_aborted_to_everybody(view: WriteIdView) -> None:
    write_ids = ValidWriteIdList("testing.t", 3, aborted=(2,), view=view)
    directory = acid_directory(case_listing(ABORTED_ON_HIVE_3), write_ids, None, insert_only=True)
    assert directory.aborted == ("delta_0000002_0000002_0000",)
    assert [delta.name.min_write_id for delta in directory.deltas] == [1, 3]


@pytest.mark.parametrize("format", [format for format in FileFormat if format.is_insert_only])
def test_every_insert_only_format_is_planned_alike(format: FileFormat) -> None:
    for name in ("M-08-insert-only-minor", "M-01-insert-only-major"):
        plan = plan_of({**CASES[name], "format": format.value})
        assert replace(plan, format=FileFormat.ORC) == plan_of({**CASES[name], "format": "orc"})
        assert plan.side_files == ()
        assert all(file.synthetic is None and file.committed_bytes is None for file in plan.input_files)


def test_one_delta_beside_originals_is_nothing_for_a_minor() -> None:
    partition = partition_of(CASES["M-04-insert-only-originals-and-delta"])
    choice = choose(partition.entity, partition.directory, partition.format, CompactionType.MINOR, CompactionPolicy())
    assert choice.nothing == "there is only delta_0000002_0000002_0000, so a minor compaction has nothing to merge"
