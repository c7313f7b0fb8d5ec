"""The examples by which the literature explains Hive ACID, with their values: before, after minor and after major.

The employee table (an UPDATE as delete delta and delta) in one bucket and in two, and MERGE on a partitioned table
clustered into five buckets. Rows are shown as ORC tools show them: operation, originalTransaction, bucket, rowId,
currentTransaction, row.
"""

from __future__ import annotations

import io
from pathlib import Path

import pyorc
import pytest

from airflow_provider_acid.acid.directory import acid_directory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.write_ids import TableWriteIds, ValidTxnList, compactor_list
from airflow_provider_acid.compaction.publish.publisher import publisher_on
from airflow_provider_acid.compaction.publish.staging import open_staging, staging_name
from airflow_provider_acid.compaction.snapshot import read_base_formats
from airflow_provider_acid.exceptions import RefusedError
from airflow_provider_acid.plan.partition import AttemptNames, PartitionState
from airflow_provider_acid.plan.plan import Column, CompactionType
from airflow_provider_acid.plan.planning import plan_compaction
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.acid_history.hive_files import Event, acid_file
from tests.harness.acid_reader import RowId, Snapshot, read_table
from tests.harness.plain_job import run_plainly

Files = dict[str, list[Event]]

EMPLOYEE = {"id": "int", "name": "string", "salary": "int"}
TRANSACTIONS = {"id": "int", "tranvalue": "string", "last_update_user": "string"}
TRANSACTION = 4
"""The compaction's, part of the published names on Hive 4."""

BUCKET_0, BUCKET_1, BUCKET_2, BUCKET_3, BUCKET_4 = 536870912, 536936448, 537001984, 537067520, 537133056


def write(folder: Path, columns: dict[str, str], files: Files) -> None:
    for path, events in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).with_name("_orc_acid_version").write_bytes(b"2")
        (folder / path).write_bytes(acid_file(events, columns))


def read_files(folder: Path, *directories: str) -> Files:
    """The events of every data file in directories, as they follow each other."""
    return {
        str(file.relative_to(folder)): list(pyorc.Reader(io.BytesIO(file.read_bytes())))
        for directory in directories
        for file in sorted((folder / directory).glob("bucket_*"))
    }


def read_rows(folder: Path, columns: dict[str, str]) -> dict[RowId, tuple[object, ...]]:
    return {row.row_id: tuple(row.values.values()) for row in read_table(folder, columns, Snapshot(2))}


def compact(
    folder: Path, columns: dict[str, str], wanted: CompactionType, *, buckets: int, hive_version: int = 4
) -> tuple[str, ...]:
    """Compact a partition with two committed write ids and return the names of what was published."""
    storage = LocalStorage(str(folder))
    txns = ValidTxnList(TRANSACTION - 1) if hive_version == 4 else None
    write_ids = compactor_list(TableWriteIds("db.t", 2))
    listing = storage.list()
    partition = PartitionState(
        entity=Entity("db", "t"),
        location=storage.location,
        directory=acid_directory(listing, write_ids, txns, read_base_formats(storage, listing)),
        write_ids=write_ids,
        columns=tuple(Column(name, kind) for name, kind in columns.items()),
        bucketed=buckets > 0,
        table_parameters={},
    )
    names = AttemptNames("0" * 16, staging_name("0" * 16), TRANSACTION if hive_version == 4 else 0)
    plan = plan_compaction(partition, names, wanted, "an example")
    open_staging(storage, plan)
    result = run_plainly(plan)
    assert result.error is None
    for output in plan.outputs:
        storage.publish(plan.staged(output.kind), output.target)
    publisher_on(storage).remove(plan.staging)
    return plan.targets


INSERTED_EMPLOYEES: Files = {
    "delta_0000001_0000001_0000/bucket_00000": [
        (0, 1, BUCKET_0, 0, 1, (1, "Jerry", 5000)),
        (0, 1, BUCKET_0, 1, 1, (2, "Tom", 8000)),
        (0, 1, BUCKET_0, 2, 1, (3, "Kate", 6000)),
    ]
}
UPDATED_EMPLOYEE: Files = {
    "delete_delta_0000002_0000002_0000/bucket_00000": [(2, 1, BUCKET_0, 1, 2, None)],
    "delta_0000002_0000002_0000/bucket_00000": [(0, 2, BUCKET_0, 0, 2, (2, "Tom", 7000))],
}
EMPLOYEES = {
    (1, 536870912, 0): ("1", "Jerry", "5000"),
    (1, 536870912, 2): ("3", "Kate", "6000"),
    (2, 536870912, 0): ("2", "Tom", "7000"),
}


@pytest.mark.parametrize(
    ("hive_version", "ending"), [(3, ""), (4, "_v0000004")], ids=["Hive 3's names", "Hive 4's names"]
)
def test_an_update_of_the_employee_table(tmp_path: Path, hive_version: int, ending: str) -> None:
    write(tmp_path, EMPLOYEE, INSERTED_EMPLOYEES)
    assert read_rows(tmp_path, EMPLOYEE)[1, 536870912, 1] == ("2", "Tom", "8000")
    write(tmp_path, EMPLOYEE, UPDATED_EMPLOYEE)
    assert read_rows(tmp_path, EMPLOYEE) == EMPLOYEES

    minor = compact(tmp_path, EMPLOYEE, CompactionType.MINOR, buckets=0, hive_version=hive_version)
    assert minor == (f"delta_0000001_0000002{ending}", f"delete_delta_0000001_0000002{ending}")
    assert read_files(tmp_path, *minor) == {
        f"delta_0000001_0000002{ending}/bucket_00000": [
            (0, 1, 536870912, 0, 1, (1, "Jerry", 5000)),
            (0, 1, 536870912, 1, 1, (2, "Tom", 8000)),
            (0, 1, 536870912, 2, 1, (3, "Kate", 6000)),
            (0, 2, 536870912, 0, 2, (2, "Tom", 7000)),
        ],
        f"delete_delta_0000001_0000002{ending}/bucket_00000": [(2, 1, 536870912, 1, 2, None)],
    }
    assert read_rows(tmp_path, EMPLOYEE) == EMPLOYEES

    major = compact(tmp_path, EMPLOYEE, CompactionType.MAJOR, buckets=0, hive_version=hive_version)
    assert major == (f"base_0000002{ending}",)
    assert read_files(tmp_path, *major) == {
        f"base_0000002{ending}/bucket_00000": [
            (0, 1, 536870912, 0, 1, (1, "Jerry", 5000)),
            (0, 1, 536870912, 2, 1, (3, "Kate", 6000)),
            (0, 2, 536870912, 0, 2, (2, "Tom", 7000)),
        ]
    }
    assert read_rows(tmp_path, EMPLOYEE) == EMPLOYEES


def test_an_update_of_the_employee_table_clustered_into_two_buckets(tmp_path: Path) -> None:
    write(
        tmp_path,
        EMPLOYEE,
        {
            "delta_0000001_0000001_0000/bucket_00000_0": [(0, 1, BUCKET_0, 0, 1, (2, "Tom", 8000))],
            "delta_0000001_0000001_0000/bucket_00001_0": [
                (0, 1, BUCKET_1, 0, 1, (1, "Jerry", 5000)),
                (0, 1, BUCKET_1, 1, 1, (3, "Kate", 6000)),
            ],
            "delete_delta_0000002_0000002_0000/bucket_00001_0": [(2, 1, BUCKET_1, 1, 2, None)],
            "delta_0000002_0000002_0001/bucket_00001_0": [(0, 2, BUCKET_1 + 1, 0, 2, (3, "Kate", 6500))],
        },
    )
    rows = {
        (1, 536870912, 0): ("2", "Tom", "8000"),
        (1, 536936448, 0): ("1", "Jerry", "5000"),
        (2, 536936449, 0): ("3", "Kate", "6500"),
    }
    assert read_rows(tmp_path, EMPLOYEE) == rows

    minor = compact(tmp_path, EMPLOYEE, CompactionType.MINOR, buckets=2)
    assert read_files(tmp_path, *minor) == {
        "delta_0000001_0000002_v0000004/bucket_00000": [(0, 1, 536870912, 0, 1, (2, "Tom", 8000))],
        "delta_0000001_0000002_v0000004/bucket_00001": [
            (0, 1, 536936448, 0, 1, (1, "Jerry", 5000)),
            (0, 1, 536936448, 1, 1, (3, "Kate", 6000)),
            (0, 2, 536936449, 0, 2, (3, "Kate", 6500)),
        ],
        "delete_delta_0000001_0000002_v0000004/bucket_00001": [(2, 1, 536936448, 1, 2, None)],
    }
    assert read_rows(tmp_path, EMPLOYEE) == rows

    major = compact(tmp_path, EMPLOYEE, CompactionType.MAJOR, buckets=2)
    assert read_files(tmp_path, *major) == {
        "base_0000002_v0000004/bucket_00000": [(0, 1, 536870912, 0, 1, (2, "Tom", 8000))],
        "base_0000002_v0000004/bucket_00001": [
            (0, 1, 536936448, 0, 1, (1, "Jerry", 5000)),
            (0, 2, 536936449, 0, 2, (3, "Kate", 6500)),
        ],
    }
    assert read_rows(tmp_path, EMPLOYEE) == rows


def inserted(bucket: int, number: int, row_id: int = 0) -> Event:
    return 0, 1, bucket, row_id, 1, (number, f"value_{number:02d}", "creation")


# WHEN MATCHED AND value IS NULL THEN DELETE is statement 0, NOT MATCHED THEN INSERT 1, MATCHED THEN UPDATE 2.
BEFORE_MERGE: dict[str, Files] = {
    "tran_date=20170410": {
        "delta_0000001_0000001_0000/bucket_00001": [inserted(BUCKET_1, 1)],
        "delta_0000001_0000001_0000/bucket_00002": [inserted(BUCKET_2, 2)],
        "delta_0000001_0000001_0000/bucket_00003": [inserted(BUCKET_3, 3)],
        "delta_0000001_0000001_0000/bucket_00004": [inserted(BUCKET_4, 4)],
    },
    "tran_date=20170413": {
        "delta_0000001_0000001_0000/bucket_00000": [inserted(BUCKET_0, 5), inserted(BUCKET_0, 10, 1)],
        "delta_0000001_0000001_0000/bucket_00001": [inserted(BUCKET_1, 6)],
        "delta_0000001_0000001_0000/bucket_00002": [inserted(BUCKET_2, 7)],
        "delta_0000001_0000001_0000/bucket_00003": [inserted(BUCKET_3, 8)],
        "delta_0000001_0000001_0000/bucket_00004": [inserted(BUCKET_4, 9)],
    },
    "tran_date=20170415": {},
}
MERGED: dict[str, Files] = {
    "tran_date=20170410": {"delete_delta_0000002_0000002_0000/bucket_00004": [(2, 1, BUCKET_4, 0, 2, None)]},
    "tran_date=20170413": {
        "delete_delta_0000002_0000002_0000/bucket_00003": [(2, 1, BUCKET_3, 0, 2, None)],
        "delete_delta_0000002_0000002_0002/bucket_00002": [(2, 1, BUCKET_2, 0, 2, None)],
        "delta_0000002_0000002_0002/bucket_00002": [(0, 2, BUCKET_2 + 2, 0, 2, (7, "value_77777", "merge_update"))],
    },
    "tran_date=20170415": {
        "delta_0000002_0000002_0001/bucket_00001": [(0, 2, BUCKET_1 + 1, 0, 2, (11, "value_11", "merge_insert"))],
        "delta_0000002_0000002_0001/bucket_00003": [(0, 2, BUCKET_3 + 1, 0, 2, (8, "value_08", "merge_insert"))],
    },
}
ROWS_AFTER_MERGE: dict[str, dict[RowId, tuple[object, ...]]] = {
    "tran_date=20170410": {
        (1, 536936448, 0): ("1", "value_01", "creation"),
        (1, 537001984, 0): ("2", "value_02", "creation"),
        (1, 537067520, 0): ("3", "value_03", "creation"),
    },
    "tran_date=20170413": {
        (1, 536870912, 0): ("5", "value_05", "creation"),
        (1, 536870912, 1): ("10", "value_10", "creation"),
        (1, 536936448, 0): ("6", "value_06", "creation"),
        (1, 537133056, 0): ("9", "value_09", "creation"),
        (2, 537001986, 0): ("7", "value_77777", "merge_update"),
    },
    "tran_date=20170415": {
        (2, 536936449, 0): ("11", "value_11", "merge_insert"),
        (2, 537067521, 0): ("8", "value_08", "merge_insert"),
    },
}
MINOR_FILES: Files = {
    "delta_0000001_0000002_v0000004/bucket_00000": [
        (0, 1, 536870912, 0, 1, (5, "value_05", "creation")),
        (0, 1, 536870912, 1, 1, (10, "value_10", "creation")),
    ],
    "delta_0000001_0000002_v0000004/bucket_00001": [(0, 1, 536936448, 0, 1, (6, "value_06", "creation"))],
    "delta_0000001_0000002_v0000004/bucket_00002": [
        (0, 1, 537001984, 0, 1, (7, "value_07", "creation")),
        (0, 2, 537001986, 0, 2, (7, "value_77777", "merge_update")),
    ],
    "delta_0000001_0000002_v0000004/bucket_00003": [(0, 1, 537067520, 0, 1, (8, "value_08", "creation"))],
    "delta_0000001_0000002_v0000004/bucket_00004": [(0, 1, 537133056, 0, 1, (9, "value_09", "creation"))],
    "delete_delta_0000001_0000002_v0000004/bucket_00002": [(2, 1, 537001984, 0, 2, None)],
    "delete_delta_0000001_0000002_v0000004/bucket_00003": [(2, 1, 537067520, 0, 2, None)],
}
MAJOR_FILES: dict[str, Files] = {
    "tran_date=20170410": {
        "base_0000002_v0000004/bucket_00001": [(0, 1, 536936448, 0, 1, (1, "value_01", "creation"))],
        "base_0000002_v0000004/bucket_00002": [(0, 1, 537001984, 0, 1, (2, "value_02", "creation"))],
        "base_0000002_v0000004/bucket_00003": [(0, 1, 537067520, 0, 1, (3, "value_03", "creation"))],
    },
    "tran_date=20170413": {
        "base_0000002_v0000004/bucket_00000": [
            (0, 1, 536870912, 0, 1, (5, "value_05", "creation")),
            (0, 1, 536870912, 1, 1, (10, "value_10", "creation")),
        ],
        "base_0000002_v0000004/bucket_00001": [(0, 1, 536936448, 0, 1, (6, "value_06", "creation"))],
        "base_0000002_v0000004/bucket_00002": [(0, 2, 537001986, 0, 2, (7, "value_77777", "merge_update"))],
        "base_0000002_v0000004/bucket_00004": [(0, 1, 537133056, 0, 1, (9, "value_09", "creation"))],
    },
}


@pytest.fixture
def merged(tmp_path: Path) -> Path:
    """The table of ten transactions in five buckets after the MERGE: one updated, two deleted, two inserted."""
    for content in (BEFORE_MERGE, MERGED):
        for partition, files in content.items():
            write(tmp_path / partition, TRANSACTIONS, files)
    return tmp_path


@pytest.mark.parametrize("partition", ROWS_AFTER_MERGE)
def test_a_merge_into_five_buckets_before_any_compaction(merged: Path, partition: str) -> None:
    assert read_rows(merged / partition, TRANSACTIONS) == ROWS_AFTER_MERGE[partition]


def test_a_minor_compaction_of_a_merge_into_five_buckets(merged: Path) -> None:
    folder = merged / "tran_date=20170413"
    minor = compact(folder, TRANSACTIONS, CompactionType.MINOR, buckets=5)
    assert minor == ("delta_0000001_0000002_v0000004", "delete_delta_0000001_0000002_v0000004")
    assert read_files(folder, *minor) == MINOR_FILES
    assert read_rows(folder, TRANSACTIONS) == ROWS_AFTER_MERGE[folder.name]


@pytest.mark.parametrize("partition", MAJOR_FILES)
def test_a_major_compaction_of_a_merge_into_five_buckets(merged: Path, partition: str) -> None:
    folder = merged / partition
    major = compact(folder, TRANSACTIONS, CompactionType.MAJOR, buckets=5)
    assert read_files(folder, *major) == MAJOR_FILES[partition]
    assert read_rows(folder, TRANSACTIONS) == ROWS_AFTER_MERGE[partition]


def test_a_major_compaction_after_a_minor_one_of_a_merge_into_five_buckets(merged: Path) -> None:
    folder = merged / "tran_date=20170413"
    compact(folder, TRANSACTIONS, CompactionType.MINOR, buckets=5)
    major = compact(folder, TRANSACTIONS, CompactionType.MAJOR, buckets=5)
    assert read_files(folder, *major) == MAJOR_FILES[folder.name]
    assert read_rows(folder, TRANSACTIONS) == ROWS_AFTER_MERGE[folder.name]


@pytest.mark.parametrize(
    ("partition", "wanted"),
    [
        ("tran_date=20170410", CompactionType.MINOR),
        ("tran_date=20170415", CompactionType.MINOR),
        ("tran_date=20170415", CompactionType.MAJOR),
    ],
)
def test_a_merge_leaves_nothing_to_do_in_partitions_with_one_delta_of_a_kind(
    merged: Path, partition: str, wanted: CompactionType
) -> None:
    with pytest.raises(RefusedError, match="nothing to merge"):
        compact(merged / partition, TRANSACTIONS, wanted, buckets=5)
