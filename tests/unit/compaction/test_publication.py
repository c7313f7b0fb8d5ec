"""Nothing is published that is not exactly what was planned, reported and still there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.publish.fence import check_inputs, verify_output
from airflow_provider_acid.compaction.publish.staging import open_staging
from airflow_provider_acid.exceptions import NameTakenError, OwnershipLostError, VerificationError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.plan.plan import CompactionPlan, OutputKind, SourceFile
from airflow_provider_acid.plan.result import CompactionResult, OutputFile
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.plain_job import run_plainly
from tests.unit.merge.acid_files import Partition, delete, insert

Made = tuple[Storage, CompactionPlan, CompactionResult, Path]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Buckets 0 and 1 with rows, bucket 2 all deleted."""
    partition = Partition(tmp_path / "t")
    for bucket in (0, 1, 2):
        partition.write("delta_0000001_0000001", [insert(1, 0, bucket, bucket=bucket)], bucket=bucket)
    partition.write("delete_delta_0000002_0000002", [delete(1, 0, 2, bucket=2)])
    plan = replace(
        partition.plan(),
        staging="_acid_compaction_0123456789abcdef",
        attempt="0123456789abcdef",
        directories=("delta_0000001_0000001", "delete_delta_0000002_0000002"),
    )
    storage = LocalStorage(str(partition.path))
    open_staging(storage, plan)
    result = run_plainly(plan)
    assert result.error is None
    return storage, plan, result, partition.path


def check_all_seen(storage: Storage, plan: CompactionPlan) -> None:
    """Where the plan's listing lacked nothing."""
    check_inputs(storage, plan, storage.list().directories)


def test_what_the_job_made_is_accepted_as_it_is(made: Made) -> None:
    storage, plan, result, _ = made
    verify_output(storage, plan, result)
    check_all_seen(storage, plan)
    assert [(file.bucket, file.rows_out) for file in result.files] == [(0, 1), (1, 1), (2, 0)]


def files(
    change: Callable[[OutputFile], OutputFile], bucket: int = 0
) -> Callable[[CompactionResult], CompactionResult]:
    def changed(result: CompactionResult) -> CompactionResult:
        return replace(result, files=tuple(change(file) if file.bucket == bucket else file for file in result.files))

    return changed


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        (files(lambda file: replace(file, size_bytes=file.size_bytes - 1)), "the job reported bucket_00000"),
        (files(lambda file: replace(file, name="bucket_00009")), "the job reported bucket_00001"),
        (files(lambda file: replace(file, bucket=1)), "accounts for bucket 1 of rows, bucket 1 of rows, b"),
        (files(lambda file: replace(file, bucket=9)), "bucket 2 of rows, bucket 9 of rows, planned were "),
        (files(lambda file: replace(file, rows_in=2)), "holds 1 rows, but 2 came in, 0 of them aborted, 0 deleted"),
        (files(lambda file: replace(file, rows_aborted=1)), "1 of them aborted"),
        (files(lambda file: replace(file, rows_deleted=0), 2), "holds 0 rows, but 1 came in"),
        (files(lambda file: replace(file, rows_out=0, rows_deleted=1)), "bucket_00000: has 0 rows; a file is written"),
        (files(lambda file: replace(file, rows_in=2, rows_out=1), 2), "bucket 2: has 1 rows; a file is written"),
        (lambda result: replace(result, files=result.files[:2]), "accounts for bucket 0 of rows, bucket 1 of rows, "),
        (lambda result: replace(result, files=result.files[1:]), "accounts for bucket 1 of rows, bucket 2 of rows, "),
        (lambda result: replace(result, attempt="another"), "got the result of attempt another"),
        (lambda result: replace(result, entity=Entity("db", "other")), "at db.other"),
    ],
)
def test_a_report_that_is_not_true_is_refused(
    made: Made, lie: Callable[[CompactionResult], CompactionResult], reason: str
) -> None:
    storage, plan, result, _ = made
    with pytest.raises(VerificationError) as refused:
        verify_output(storage, plan, lie(result))
    assert reason in str(refused.value)
    assert "the table was not changed" in str(refused.value)


def unlink(name: str) -> Callable[[Path], None]:
    return lambda output: (output / name).unlink()


def write(name: str) -> Callable[[Path], object]:
    return lambda output: (output / name).write_bytes(b"more")


@pytest.mark.parametrize(
    "damage",
    [
        unlink("bucket_00001"),
        unlink("_orc_acid_version"),
        unlink("_metadata_acid"),
        write("bucket_00001"),
        write("bucket_00005"),
        write("part-0"),
        lambda output: (output / "nested").mkdir(),
    ],
)
def test_an_output_that_is_not_as_reported_is_refused(made: Made, damage: Callable[[Path], object]) -> None:
    storage, plan, result, path = made
    damage(path / plan.staged(OutputKind.ROWS))
    with pytest.raises(VerificationError):
        verify_output(storage, plan, result)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (unlink("delta_0000001_0000001/bucket_00001"), "delta_0000001_0000001/bucket_00001"),
        (write("delta_0000001_0000001/bucket_00001"), "delta_0000001_0000001/bucket_00001"),
        (write("delta_0000001_0000001/bucket_00007"), "delta_0000001_0000001/bucket_00007"),
        (unlink("delete_delta_0000002_0000002/bucket_00000"), "delete_delta_0000002_0000002/bucket_00000"),
    ],
)
def test_inputs_that_changed_are_named(made: Made, change: Callable[[Path], object], named: str) -> None:
    storage, plan, _, path = made
    change(path)
    with pytest.raises(OwnershipLostError, match=f"its input files changed while they were merged: {named}. Remedy: "):
        check_all_seen(storage, plan)


def test_an_empty_input_file_that_is_gone_is_named(made: Made) -> None:
    """With it may have gone the whole directory, which tells that somebody compacted or dropped the partition."""
    storage, plan, _, path = made
    empty = "delta_0000001_0000001/bucket_00004"
    plan = replace(plan, side_files=(*plan.side_files, SourceFile(empty, 0)))
    (path / empty).touch()
    check_all_seen(storage, plan)
    (path / empty).unlink()
    with pytest.raises(OwnershipLostError, match=f"its input files changed while they were merged: {empty}. Remedy: "):
        check_all_seen(storage, plan)


@pytest.mark.parametrize("name", ["000000_0", "sub/000000_0_copy_1"])
def test_an_original_file_that_a_base_would_hide_is_named(made: Made, name: str) -> None:
    storage, plan, _, path = made
    (path / name).parent.mkdir(exist_ok=True)
    (path / name).write_bytes(b"somebody's")
    with pytest.raises(OwnershipLostError, match=f"its input files changed while they were merged: {name}. Remedy: "):
        check_all_seen(storage, plan)
    check_all_seen(storage, replace(plan, directories=("base_0000001", *plan.directories)))


MINOR_TARGETS = ("delta_0000001_0000003_v0000009", "delete_delta_0000001_0000003_v0000009")


@pytest.mark.parametrize(
    ("targets", "name"),
    [
        (("base_0000003_v0000009",), "delta_0000001_0000005_v0000007"),
        (("base_0000003_v0000009",), "delete_delta_0000003_0000004_v0000007"),
        (MINOR_TARGETS, "delta_0000001_0000003_v0000007"),
        (MINOR_TARGETS, "delete_delta_0000001_0000003"),
        (MINOR_TARGETS, "delta_0000001_0000005_v0000007"),
        (MINOR_TARGETS, "delete_delta_0000002_0000004_v0000007"),
        (MINOR_TARGETS[1:], "delta_0000003_0000004_v0000007"),
        (MINOR_TARGETS, "base_0000002_v0000007"),
        (MINOR_TARGETS[:1], "base_0000001_v0000007"),
    ],
)
def test_a_compacted_delta_that_would_be_read_beside_the_output_is_named(
    made: Made, targets: tuple[str, ...], name: str
) -> None:
    """HIVE-29210, also where the ranges only overlap: another compaction's job may outlive its transaction."""
    storage, plan, _, path = made
    plan = replace(plan, outputs=tuple(replace(plan.outputs[0], target=target) for target in targets))
    (path / name).mkdir()
    with pytest.raises(OwnershipLostError, match=f"{name} appeared, with write ids of {', '.join(targets)}, and both"):
        check_all_seen(storage, plan)


@pytest.mark.parametrize("targets", [("base_0000003_v0000009",), MINOR_TARGETS])
@pytest.mark.parametrize(
    "name",
    ["delta_0000001_0000002_v0000007", "delta_0000004_0000005_v0000007", "delta_0000003_0000006", "base_0000002"],
)
def test_a_delta_that_is_hidden_or_disjoint_or_streamed_may_appear(
    made: Made, targets: tuple[str, ...], name: str
) -> None:
    storage, plan, _, path = made
    (path / name).mkdir()
    check_all_seen(storage, replace(plan, outputs=tuple(replace(plan.outputs[0], target=target) for target in targets)))


@pytest.mark.parametrize("targets", [("base_0000005_v0000009",), ("delta_0000001_0000005_v0000009",)])
@pytest.mark.parametrize(
    ("name", "is_missed"),
    [
        ("delta_0000003_0000003", True),
        ("delete_delta_0000003_0000003_0001", True),
        ("delta_0000003_0000005", True),
        ("delta_0000001_0000001_0000", True),
        ("delta_0000004_0000004", False),
        ("base_0000004", False),
        ("delta_0000006_0000006", False),
        ("delta_0000003_0000006", False),
        ("delta_0000001_0000002_v0000007", False),
        ("_acid_compaction_fedcba9876543210", False),
        ("_tmp", False),
    ],
)
def test_what_an_old_listing_lacked_is_not_hidden(
    made: Made, targets: tuple[str, ...], name: str, is_missed: bool
) -> None:
    """A NameNode that lost its place without knowing it shows what was there before: 4 is aborted, 6 was open."""
    storage, plan, _, path = made
    outputs = tuple(replace(plan.outputs[0], target=target) for target in targets)
    plan = replace(plan, outputs=outputs, high_water_mark=5, aborted_write_ids=(4,))
    seen = [path for path in storage.list().directories if "/" not in path]
    (path / name).mkdir()
    if is_missed:
        with pytest.raises(OwnershipLostError, match=f"{name}, whose writers had ended before it was planned"):
            check_inputs(storage, plan, seen)
    else:
        check_inputs(storage, plan, seen)
    check_inputs(storage, plan, [*seen, name])


def test_what_is_no_input_may_change(made: Made) -> None:
    storage, plan, _, path = made
    (path / "delta_0000003_0000003_0000").mkdir()
    (path / "delta_0000003_0000003_0000" / "bucket_00000").write_bytes(b"another's")
    (path / "delta_0000001_0000001" / "_orc_acid_version").write_bytes(b"2")
    (path / "delta_0000001_0000001" / "bucket_00004").touch()
    check_all_seen(storage, plan)


def test_a_target_that_exists_is_refused_by_name(made: Made) -> None:
    storage, plan, _, path = made
    (path / plan.targets[0]).mkdir()
    with pytest.raises(NameTakenError, match=f"{plan.targets[0]}: exists already"):
        check_all_seen(storage, plan)
