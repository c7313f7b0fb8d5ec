from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_acid import exceptions
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_3, HIVE_4
from airflow_provider_acid.exceptions import ConfigurationError, UnsupportedTableError
from airflow_provider_acid.plan.partition import AttemptNames, CompactionPolicy, MinorPublication, PartitionState
from airflow_provider_acid.plan.plan import (
    Column,
    CompactionPlan,
    CompactionType,
    FileFormat,
    OrcOptions,
    OutputKind,
)
from airflow_provider_acid.plan.planning import nothing_for_a_major, orc_options, plan_compaction
from airflow_provider_acid.plan.thresholds import Thresholds, decide
from tests.unit.acid.case_files import Case, case_directory, case_write_ids, cases

CASES = cases("plan")
PLANNED = [name for name, case in CASES.items() if "error" not in case["expect"]]


def partition_of(case: Case) -> PartitionState:
    return PartitionState(
        entity=Entity("testing", "t", "ds=1"),
        location="file:/warehouse/t/ds=1",
        directory=case_directory(case, "compactor"),
        write_ids=case_write_ids(case, "compactor"),
        columns=(Column("a", "int"),),
        bucketed=case.get("bucketed", False),
        table_parameters={"orc.compress": "SNAPPY"},
        format=FileFormat(case.get("format", "acid_orc")),
        flush_lengths=case.get("flush_lengths", {}),
    )


def plan_of(case: Case, **changes: Any) -> CompactionPlan:
    policy = case.get("policy", {})
    arguments: dict[str, Any] = {
        "partition": partition_of(case),
        "names": AttemptNames("a1", "_airflow_a1", case.get("visibility_txn_id", 0)),
        "wanted": CompactionType(case.get("wanted", "major")),
        "reason": "asked for",
        "policy": CompactionPolicy(
            **policy
            | {
                "minor_publication": MinorPublication(policy.get("minor_publication", "under_lock")),
                "hive": {3: HIVE_3, 4: HIVE_4}[policy.get("hive", 4)],
            }
        ),
    }
    return plan_compaction(**arguments | changes)


def described(plan: CompactionPlan) -> dict[str, object]:
    """What a case may expect of a plan, by short names; delete events have buckets of their own, ``deletes N``."""
    return {
        "type": plan.type.value,
        "reason": plan.reason,
        "targets": [output.target for output in plan.outputs],
        "kinds": [output.kind.value for output in plan.outputs],
        "high_water_mark": plan.high_water_mark,
        "directories": list(plan.directories),
        "aborted_write_ids": list(plan.aborted_write_ids),
        "side_files": [file.path for file in plan.side_files],
        "synthetic": {
            file.path: [file.synthetic.write_id, file.synthetic.bucket_property]
            for file in plan.input_files
            if file.synthetic
        },
        "committed_bytes": {
            file.path: file.committed_bytes for file in plan.input_files if file.committed_bytes is not None
        },
        "buckets": {
            f"{'deletes ' if bucket.output is OutputKind.DELETES else ''}{bucket.bucket}": {
                "rows": [file.path for file in bucket.rows],
                "deletes": [file.path for file in bucket.deletes],
            }
            for bucket in plan.buckets
        },
    }


@pytest.mark.parametrize("name", PLANNED)
def test_a_plan_names_output_and_inputs(name: str) -> None:
    case = CASES[name]
    plan = plan_of(case)
    found = described(plan)
    assert {field: found[field] for field in case["expect"]} == case["expect"]
    assert all(case["files"][file.path] == file.size_bytes for file in (*plan.input_files, *plan.side_files))


@pytest.mark.parametrize("name", PLANNED)
def test_a_plan_survives_its_way_to_the_spark_job(name: str) -> None:
    plan = plan_of(CASES[name])
    assert CompactionPlan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "error" in case["expect"]])
def test_what_cannot_be_merged_exactly_is_refused_by_name(name: str) -> None:
    case = CASES[name]
    with pytest.raises(getattr(exceptions, case["expect"]["error"])) as refused:
        plan_of(case)
    for text in case["expect"]["mentions"]:
        assert text in str(refused.value)


def test_a_minor_that_the_thresholds_ask_for_says_with_its_figures_why_it_is_a_major() -> None:
    """I-35 on Hive 3, whose Initiator asks for a minor of a converted table"""
    case = {**cases("decision")["I-35-originals-hive-3"], "txns": None}
    decision = decide(case_directory(case, "compactor"), Thresholds(**case["thresholds"]), HIVE_3)
    assert decision.type is CompactionType.MINOR
    plan = plan_of(case, wanted=decision.type, reason=decision.reason)
    assert plan.type is CompactionType.MAJOR
    assert plan.reason.startswith("minor: 3 deltas > 2; ratio ")
    assert "; done as a major, because it has original files, which become ACID rows in a base only" in plan.reason


def test_a_plan_carries_over_what_it_was_given() -> None:
    plan = plan_of(CASES["W-09-aborted-in-the-middle"])
    assert plan == replace(
        plan,
        attempt="a1",
        entity=Entity("testing", "t", "ds=1"),
        type=CompactionType.MAJOR,
        reason="asked for",
        location="file:/warehouse/t/ds=1",
        staging="_airflow_a1",
        format=FileFormat.ACID_ORC,
        columns=(Column("a", "int"),),
        high_water_mark=27,
        orc=OrcOptions(compression="snappy"),
    )


@pytest.mark.parametrize("staging", ["tmp", "base_0000001", "_a/b", ""])
def test_a_staging_name_that_readers_see_is_refused(staging: str) -> None:
    with pytest.raises(ConfigurationError, match="staging"):
        plan_of(CASES["W-05-no-base"], names=AttemptNames("a1", staging, 9))


def test_a_plan_is_made_from_a_compactors_list_only() -> None:
    case = CASES["W-05-no-base"]
    with pytest.raises(ConfigurationError, match="reader"):
        plan_of(case, partition=replace(partition_of(case), write_ids=case_write_ids(case, "reader")))


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
        (nothing_for_a_major(directory, CompactionPolicy()), hive_4),
        (nothing_for_a_major(directory, CompactionPolicy(rewrite_single_delta=True)), hive_3),
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
