from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from airflow_provider_acid import exceptions
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.plan import Column, CompactionPlan, CompactionType, OrcOptions
from airflow_provider_acid.acid.planning import major_plan, orc_options, worth_compacting
from airflow_provider_acid.exceptions import ConfigurationError, UnsupportedTableError
from tests.unit.acid.case_files import Case, case_directory, case_write_ids, cases

CASES = cases("plan")


def plan_of(case: Case, **changes: Any) -> CompactionPlan:
    arguments: dict[str, Any] = {
        "attempt": "a1",
        "entity": Entity("testing", "t", "ds=1"),
        "location": "file:/warehouse/t/ds=1",
        "directory": case_directory(case, "compactor"),
        "write_ids": case_write_ids(case, "compactor"),
        "columns": (Column("a", "int"),),
        "bucketed": case.get("bucketed", False),
        "table_parameters": {"orc.compress": "SNAPPY"},
        "staging": "_airflow_a1",
        "visibility_txn_id": case.get("visibility_txn_id", 0),
        "reason": "major: asked for",
    }
    return major_plan(**arguments | changes)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "error" not in case["expect"]])
def test_a_plan_names_output_and_inputs(name: str) -> None:
    case = CASES[name]
    plan = plan_of(case)
    found = {
        **asdict(plan),
        "directories": list(plan.directories),
        "aborted_write_ids": list(plan.aborted_write_ids),
        "buckets": {
            str(bucket.bucket): {
                "rows": [file.path for file in bucket.rows],
                "deletes": [file.path for file in bucket.deletes],
            }
            for bucket in plan.buckets
        },
    }
    assert {name: found[name] for name in case["expect"]} == case["expect"]
    assert all(case["files"][file.path] == file.size_bytes for file in plan.input_files)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "error" in case["expect"]])
def test_what_cannot_be_merged_exactly_is_refused_by_name(name: str) -> None:
    case = CASES[name]
    with pytest.raises(getattr(exceptions, case["expect"]["error"])) as refused:
        plan_of(case)
    for text in case["expect"]["mentions"]:
        assert text in str(refused.value)


def test_a_plan_carries_over_what_it_was_given() -> None:
    plan = plan_of(CASES["W-09-aborted-in-the-middle"])
    assert plan == replace(
        plan,
        attempt="a1",
        entity=Entity("testing", "t", "ds=1"),
        type=CompactionType.MAJOR,
        reason="major: asked for",
        location="file:/warehouse/t/ds=1",
        staging="_airflow_a1",
        columns=(Column("a", "int"),),
        high_water_mark=27,
        orc=OrcOptions(compression="snappy"),
    )
    assert CompactionPlan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("staging", ["tmp", "base_0000001", "_a/b", ""])
def test_a_staging_name_that_readers_see_is_refused(staging: str) -> None:
    with pytest.raises(ConfigurationError, match="staging"):
        plan_of(CASES["W-05-no-base"], staging=staging)


def test_a_plan_is_made_from_a_compactors_list_only() -> None:
    case = CASES["W-05-no-base"]
    with pytest.raises(ConfigurationError, match="reader"):
        plan_of(case, write_ids=case_write_ids(case, "reader"))


@pytest.mark.parametrize(
    ("scenario", "directories", "hive_4", "hive_3"),
    [
        ("W-44 single insert", ["delta_0000001_0000001_0000"], "only delta_0000001_0000001_0000", None),
        ("W-45 single base", ["delta_0000001_0000001", "base_0000002"], "only base_0000002", "only base_0000002"),
        ("W-46 base after a major", ["base_0000002_v0000009"], "only base_", "only base_"),
        ("nothing", [], "no data", "no data"),
        ("base and delta", ["base_0000001", "delta_0000002_0000002"], None, None),
        ("both kinds", ["delta_0000001_0000001", "delete_delta_0000002_0000002"], None, None),
        ("original files", ["."], None, None),
    ],
)
def test_one_directory_is_not_worth_a_major_on_hive_4(
    scenario: str, directories: list[str], hive_4: str | None, hive_3: str | None
) -> None:
    files = {f"{name}/bucket_00000" if name != "." else "000000_0": 1 for name in directories}
    case = {"files": files, "write_ids": {"high_water_mark": 2}, "txns": {"high_water_mark": 9}}
    directory = case_directory(case, "compactor")
    for found, expected in (
        (worth_compacting(directory), hive_4),
        (worth_compacting(directory, single_delta=True), hive_3),
    ):
        assert (found is None) == (expected is None), (scenario, found)
        assert (expected or "") in (found or ""), scenario


def test_options_come_from_the_table_and_are_orcs_defaults_elsewhere() -> None:
    assert orc_options({}) == OrcOptions("zlib", 262_144, 67_108_864, 10_000, ())
    assert orc_options(
        {
            "orc.compress": "ZSTD",
            "orc.compress.size": "2700",
            "orc.stripe.size": "1048576",
            "orc.row.index.stride": "0",
            "orc.bloom.filter.columns": "a, b,",
        }
    ) == OrcOptions("zstd", 2700, 1_048_576, 0, ("a", "b"))
    assert orc_options({"orc.create.index": "false"}).row_index_stride == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("orc.compress", "LZO"),
        ("orc.compress", ""),
        ("orc.compress.size", "0"),
        ("orc.stripe.size", "64M"),
        ("orc.row.index.stride", "-1"),
    ],
)
def test_an_option_that_cannot_be_honoured_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(UnsupportedTableError, match=name):
        orc_options({name: value})
