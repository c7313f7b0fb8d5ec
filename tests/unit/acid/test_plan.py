"""Plans and results are the same after the way through JSON, and a wrong document is refused by field."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.plan.plan import (
    FORMAT_VERSION,
    BucketPlan,
    Column,
    CompactionPlan,
    CompactionType,
    CopiedStripes,
    FileFormat,
    OrcOptions,
    OutputDirectory,
    OutputKind,
    SourceFile,
    SyntheticIds,
)
from airflow_provider_acid.plan.result import CompactionResult, OutputFile

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
counts = st.integers(0, 2**63 - 1)
entities = st.builds(Entity, texts, texts, st.none() | texts)
synthetic_ids = st.builds(SyntheticIds, counts, st.integers(0, 2**31 - 1))
files = st.lists(st.builds(SourceFile, texts, counts, st.none() | counts, st.none() | synthetic_ids), max_size=3).map(
    tuple
)
kinds = st.sampled_from(OutputKind)
plans = st.builds(
    CompactionPlan,
    attempt=texts,
    entity=entities,
    type=st.sampled_from(CompactionType),
    reason=texts,
    location=texts,
    staging=texts,
    format=st.sampled_from(FileFormat),
    outputs=st.lists(st.builds(OutputDirectory, kinds, texts), max_size=2).map(tuple),
    columns=st.lists(st.builds(Column, texts, texts), max_size=3).map(tuple),
    high_water_mark=counts,
    aborted_write_ids=st.lists(counts, max_size=3).map(tuple),
    directories=st.lists(texts, max_size=3).map(tuple),
    side_files=files,
    bucketed=st.booleans(),
    orc=st.builds(
        OrcOptions,
        texts,
        counts,
        counts,
        counts,
        st.lists(texts, max_size=2).map(tuple),
        st.sampled_from(CopiedStripes),
        st.floats(0, 1),
    ),
    buckets=st.lists(st.builds(BucketPlan, kinds, st.integers(0, 4095), files, files), max_size=3).map(tuple),
)
results = st.builds(
    CompactionResult,
    attempt=texts,
    plan_digest=texts,
    entity=entities,
    error=st.none() | texts,
    files=st.lists(st.builds(OutputFile, kinds, counts, st.none() | texts, *[counts] * 7), max_size=3).map(tuple),
    seconds=st.floats(0, allow_infinity=False),
)

PLAN = CompactionPlan(
    attempt="a1",
    entity=Entity("sales", "orders", "ds=2024-01-01"),
    type=CompactionType.MAJOR,
    reason="12 deltas",
    location="file:/wh/orders/ds=2024-01-01",
    staging="_compaction_a1",
    format=FileFormat.ACID_ORC,
    outputs=(OutputDirectory(OutputKind.ROWS, "base_0000005_v0000012"),),
    columns=(Column("id", "bigint"),),
    high_water_mark=5,
    aborted_write_ids=(3,),
    directories=("delta_0000001_0000001_0000", "delete_delta_0000004_0000004_0000"),
    side_files=(),
    bucketed=True,
    orc=OrcOptions(),
    buckets=(
        BucketPlan(
            OutputKind.ROWS,
            0,
            (SourceFile("delta_0000001_0000001_0000/bucket_00000", 100),),
            (SourceFile("delete_delta_0000004_0000004_0000/bucket_00000", 10),),
        ),
        BucketPlan(
            OutputKind.ROWS,
            1,
            (SourceFile("delta_0000001_0000001_0000/bucket_00001", 200),),
            (SourceFile("delete_delta_0000004_0000004_0000/bucket_00000", 10),),
        ),
    ),
)
RESULT = CompactionResult(
    "a1", PLAN.digest, PLAN.entity, None, (OutputFile(OutputKind.ROWS, 0, "bucket_00000", 99, 1, 10, 1, 2, 0, 7),), 1.5
)


@given(plans)
def test_a_plan_is_the_same_after_json(plan: CompactionPlan) -> None:
    assert CompactionPlan.from_json(plan.to_json()) == plan


@given(results)
def test_a_result_is_the_same_after_json(result: CompactionResult) -> None:
    assert CompactionResult.from_json(result.to_json()) == result


def test_each_count_of_an_output_file_keeps_its_place() -> None:
    (file,) = CompactionResult.from_json(RESULT.to_json()).files
    assert asdict(file) == {
        "output": OutputKind.ROWS,
        "bucket": 0,
        "name": "bucket_00000",
        "size_bytes": 99,
        "stripes": 1,
        "rows_in": 10,
        "rows_aborted": 1,
        "rows_deleted": 2,
        "rows_repeated": 0,
        "rows_out": 7,
        "attempt": None,
    }


@pytest.mark.parametrize("name", [field.name for field in fields(CompactionPlan)])
@pytest.mark.parametrize("value", [None, {"unexpected": 1}, 1.5])
def test_a_plan_with_a_wrong_field_is_refused_by_its_name(name: str, value: object) -> None:
    document: dict[str, Any] = {**json.loads(PLAN.to_json()), name: value}
    with pytest.raises(ConfigurationError, match="JSON field"):
        CompactionPlan.from_json(json.dumps(document))


@pytest.mark.parametrize(
    "name", [field.name for field in fields(CompactionResult) if field.name not in ("error", "fault")]
)
def test_a_result_with_a_missing_field_is_refused(name: str) -> None:
    document: dict[str, Any] = json.loads(RESULT.to_json())
    del document[name]
    with pytest.raises(ConfigurationError, match="JSON field"):
        CompactionResult.from_json(json.dumps(document))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "rebalance"}, "'rebalance' is none of minor, major"),
        ({"bucketed": "false"}, "'bucketed': expected true or false, found str"),
        ({"high_water_mark": True}, "'high_water_mark': expected an integer, found bool"),
        ({"aborted_write_ids": [1, "2"]}, "'aborted_write_ids': expected an integer, found str"),
        ({"format_version": FORMAT_VERSION + 1}, "run operator and Spark job from the same release"),
    ],
)
def test_a_wrong_plan_says_what_is_wrong_with_it(changes: dict[str, object], message: str) -> None:
    document = json.dumps({**json.loads(PLAN.to_json()), **changes})
    with pytest.raises(ConfigurationError, match=message):
        CompactionPlan.from_json(document)


@pytest.mark.parametrize("document", ["", "{", "[]", "null", PLAN.to_json()[:-20]])
def test_what_is_no_whole_document_is_refused(document: str) -> None:
    with pytest.raises(ConfigurationError):
        CompactionPlan.from_json(document)
    with pytest.raises(ConfigurationError):
        CompactionResult.from_json(document)


@pytest.mark.parametrize(("copies", "small_bytes"), [("auto", 250), ("always", 0), ("never", 0)])
def test_only_auto_knows_small_stripes(copies: str, small_bytes: int) -> None:
    options = OrcOptions(stripe_bytes=1000, stripe_copy=CopiedStripes(copies), small_stripe_share=0.25)
    assert options.small_stripe_bytes == small_bytes


def test_a_file_used_by_several_buckets_is_counted_once() -> None:
    assert PLAN.input_bytes == 310
    assert [bucket.input_bytes for bucket in PLAN.buckets] == [110, 210]
    assert [file.size_bytes for file in PLAN.input_files] == [10, 100, 200]


@pytest.mark.parametrize(
    "changes",
    [
        {"attempt": "a2", "staging": "_compaction_a2"},
        {"outputs": (OutputDirectory(OutputKind.ROWS, "base_0000005_v0000013"),)},
        {"reason": "asked for by a user"},
        {"high_water_mark": 7},
    ],
)
def test_finished_output_serves_a_retry_that_merges_the_same(changes: dict[str, Any]) -> None:
    assert PLAN.merges_the_same_as(replace(PLAN, **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"aborted_write_ids": (3, 4)},
        {"aborted_write_ids": ()},
        {"directories": PLAN.directories[:1]},
        {"buckets": PLAN.buckets[:1]},
        {"columns": (Column("id", "int"),)},
        {"location": "file:/wh/orders/ds=2024-01-02"},
        {"entity": Entity("sales", "orders", "ds=2024-01-02")},
        {"type": CompactionType.MINOR},
        {"orc": OrcOptions(compression="zstd")},
        {"bucketed": False},
        {"format": FileFormat.ORC},
        {"outputs": (OutputDirectory(OutputKind.DELETES, "base_0000005_v0000012"),)},
        {"outputs": PLAN.outputs * 2},
        {"side_files": (SourceFile("delta_0000001_0000001_0000/bucket_00000_flush_length", 8),)},
    ],
)
def test_finished_output_does_not_serve_a_retry_that_merges_something_else(changes: dict[str, Any]) -> None:
    assert not PLAN.merges_the_same_as(replace(PLAN, **changes))


def test_names_of_tables_are_compared_as_the_metastore_keeps_them() -> None:
    assert Entity("Sales", "ORDERS", "ds=A") == Entity("sales", "orders", "ds=A")
    assert Entity("Sales", "ORDERS", "ds=A") != Entity("sales", "orders", "ds=a")
    assert str(Entity("Sales", "Orders")) == "sales.orders"
    assert str(Entity("Sales", "Orders", "ds=A")) == "sales.orders/ds=A"
