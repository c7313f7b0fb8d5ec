from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness.acid_reader import NotEnoughHistoryError, RowId, Snapshot, as_hive_prints, read_table
from tests.harness.hive_tables import VERSIONS, HiveFixture, fixture_names, load_fixture
from tests.harness.hive_text import hive_text, java_text

FULL_ACID_FIXTURES = [
    fixture
    for version in VERSIONS
    for fixture in (load_fixture(version, name) for name in fixture_names(version))
    if fixture.full_acid
]


def _order(row: Mapping[str, object]) -> tuple[str, str]:
    return str(row["file"]), str(row["row__id"])


def _rows(fixture: HiveFixture, folder: Path, snapshot: Snapshot) -> list[dict[str, object]]:
    definition = fixture.definition
    location = fixture.unpack(folder)
    rows = read_table(location, definition.columns, snapshot, partition_keys=tuple(definition.partition_keys))
    return [as_hive_prints(row) for row in rows]


def _snapshot(fixture: HiveFixture) -> Snapshot:
    return Snapshot(fixture.high_water_mark, fixture.open_write_ids, fixture.aborted_write_ids)


@pytest.mark.parametrize("fixture", FULL_ACID_FIXTURES, ids=lambda fixture: f"{fixture.version}-{fixture.name}")
def test_the_reader_sees_what_hive_saw(fixture: HiveFixture, tmp_path: Path) -> None:
    assert sorted(_rows(fixture, tmp_path, _snapshot(fixture)), key=_order) == sorted(fixture.rows, key=_order)


@pytest.mark.parametrize("name", ["a_abort", "a_stream", "a_stream_open"])
def test_without_its_snapshot_the_reader_sees_other_rows(name: str, tmp_path: Path) -> None:
    fixture = load_fixture("3.1.3", name)
    trusting = Snapshot(fixture.high_water_mark)
    assert len(_rows(fixture, tmp_path, trusting)) != len(fixture.rows)


@pytest.mark.parametrize("name", ["base_0000006", "base_0000006_v0000009"])
def test_a_compacted_base_takes_the_place_of_its_deltas_once_its_transaction_is_committed(
    name: str, tmp_path: Path
) -> None:
    location = load_fixture("3.1.3", "a_plain").unpack(tmp_path)
    (location / name).mkdir()
    (location / name / "_metadata_acid").write_text('{"thisFileVersion":"0","dataFormat":"compacted"}')
    running = Snapshot(6, invalid_transactions={9})
    assert read_table(location, {"id": "int"}, Snapshot(6)) == []
    assert (read_table(location, {"id": "int"}, running) == []) == (name == "base_0000006")
    assert read_table(location, {"id": "int"}, replace(running, check_visibility=False)) == []


def test_a_compacted_base_is_not_read_while_one_of_its_write_ids_is_open(tmp_path: Path) -> None:
    location = load_fixture("3.1.3", "a_plain").unpack(tmp_path)
    (location / "base_0000006_v0000009").mkdir()
    with pytest.raises(NotEnoughHistoryError, match="base_0000006_v0000009"):
        read_table(location, {"id": "int"}, Snapshot(6, open_write_ids={5}))
    (location / "base_0000001_v0000008").mkdir()
    assert read_table(location, {"id": "int"}, Snapshot(6, open_write_ids={5})) != []


def test_a_later_compaction_is_not_seen(tmp_path: Path) -> None:
    location = load_fixture("3.1.3", "a_plain").unpack(tmp_path)
    (location / "base_0000006_v0000009").mkdir()
    assert read_table(location, {"id": "int"}, Snapshot(6, transaction_high_water_mark=8)) != []
    assert read_table(location, {"id": "int"}, Snapshot(6, transaction_high_water_mark=9)) == []


def test_a_delete_in_a_foreign_bucket_file_counts_for_hive_3_only(tmp_path: Path) -> None:
    location = load_fixture("3.1.3", "a_plain").unpack(tmp_path)
    foreign = location / "delete_delta_0000003_0000003_0000"
    (foreign / "bucket_00000").rename(foreign / "bucket_00007")
    deleted_by_3 = (1, 536870912, 1)

    def row_ids(snapshot: Snapshot) -> set[RowId]:
        return {row.row_id for row in read_table(location, {"id": "int"}, snapshot)}

    assert deleted_by_3 not in row_ids(Snapshot(6))
    assert deleted_by_3 in row_ids(Snapshot(6, deletes_of_own_bucket_only=True))


def test_hive_4_counts_a_delete_of_the_same_write_id_only_when_its_statement_is_later(tmp_path: Path) -> None:
    location = load_fixture("3.1.3", "a_plain").unpack(tmp_path)
    for after in ("0000001_0000001_0000", "0000001_0000001_0001"):
        (location / f"delete_delta_{after}").mkdir()
    (location / "delete_delta_0000003_0000003_0000" / "bucket_00000").rename(
        location / "delete_delta_0000001_0000001_0000" / "bucket_00000"
    )
    deleted = (1, 536870912, 1)

    def row_ids() -> set[RowId]:
        hive_4 = Snapshot(6, aborted_write_ids={4, 6}, deletes_of_later_statements_only=True)
        return {row.row_id for row in read_table(location, {"id": "int"}, hive_4)}

    assert deleted in row_ids()
    (location / "delete_delta_0000001_0000001_0000" / "bucket_00000").rename(
        location / "delete_delta_0000001_0000001_0001" / "bucket_00000"
    )
    assert deleted not in row_ids()


def test_original_files_are_numbered_through_all_directories_in_the_order_of_their_paths(tmp_path: Path) -> None:
    converted = load_fixture("3.1.3", "a_conv").unpack(tmp_path)
    location = tmp_path / "t"
    for name in ("000000_0_copy_2", "000000_0_copy_10", "deeper/down/000000_0"):
        (location / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(converted / "000000_0", location / name)
    (location / "000000_0").touch()
    rows = read_table(location, {"id": "int"}, Snapshot(0))
    files = [row.file for row in sorted(rows, key=lambda row: row.row_id)]
    assert [row.row_id for row in rows if row.row_id[:2] != (0, 536870912)] == []
    assert list(dict.fromkeys(files)) == ["000000_0_copy_10", "000000_0_copy_2", "deeper/down/000000_0"]


def test_files_of_load_data_have_the_write_id_and_statement_of_their_directory(tmp_path: Path) -> None:
    raw = load_fixture("3.1.3", "a_conv").unpack(tmp_path) / "000000_0"
    for name in ("base_0000004", "delta_0000005_0000005_0003"):
        (tmp_path / "t" / name).mkdir(parents=True)
        shutil.copy(raw, tmp_path / "t" / name / "000002_0")
    rows = read_table(tmp_path / "t", {"id": "int"}, Snapshot(5))
    assert {row.row_id[:2] for row in rows} == {(4, 1 << 29 | 2 << 16), (5, 1 << 29 | 2 << 16 | 3)}


def test_rows_of_an_open_write_id_are_not_seen(tmp_path: Path) -> None:
    location = load_fixture("3.1.3", "a_multi").unpack(tmp_path)
    assert read_table(location, {"id": "int"}, Snapshot(1), partition_keys=["p"]) != []
    assert read_table(location, {"id": "int"}, Snapshot(1, open_write_ids={1}), partition_keys=["p"]) == []


def test_bytes_behind_the_flushed_length_are_not_read(tmp_path: Path) -> None:
    fixture = load_fixture("3.1.3", "a_stream_open")
    location = fixture.unpack(tmp_path)
    with (location / "delta_0000001_0000005" / "bucket_00000").open("ab") as growing:
        growing.write(b"half a stripe")
    rows = read_table(location, fixture.definition.columns, _snapshot(fixture))
    assert len(rows) == len(fixture.rows)


def test_a_delete_event_of_an_aborted_write_id_deletes_nothing(tmp_path: Path) -> None:
    location = load_fixture("3.1.3", "a_plain").unpack(tmp_path)
    (location / "delete_delta_0000003_0000003_0000").rename(location / "delete_delta_0000003_0000004")
    deleted_by_3 = (1, 536870912, 1)

    def row_ids(snapshot: Snapshot) -> set[RowId]:
        return {row.row_id for row in read_table(location, {"id": "int"}, snapshot)}

    assert deleted_by_3 not in row_ids(Snapshot(4))
    assert deleted_by_3 in row_ids(Snapshot(4, aborted_write_ids={3}))


def test_a_wider_delta_takes_the_place_of_narrower_ones(tmp_path: Path) -> None:
    location = load_fixture("3.1.3", "a_plain").unpack(tmp_path)
    (location / "delta_0000001_0000006").mkdir()
    assert read_table(location, {"id": "int"}, Snapshot(6)) == []


def test_a_row_that_two_directories_hold_is_an_error(tmp_path: Path) -> None:
    location = load_fixture("3.1.3", "a_multi").unpack(tmp_path)
    partition = location / "p=1"
    shutil.copytree(partition / "delta_0000001_0000001_0000", partition / "delta_0000001_0000001_0007")
    with pytest.raises(AssertionError, match="occurs twice"):
        read_table(location, {"id": "int"}, Snapshot(1), partition_keys=["p"])


@pytest.mark.parametrize(
    ("value", "single", "text"),
    [
        (0.0, False, "0.0"),
        (0.1, True, "0.1"),
        (1e7, False, "1.0E7"),
        (1234567.5, False, "1234567.5"),
        (0.001, False, "0.001"),
        (0.00012, False, "1.2E-4"),
        (-2.25e300, False, "-2.25E300"),
        (16777216.0, True, "1.6777216E7"),
    ],
)
def test_numbers_are_printed_as_java_prints_them(value: float, single: bool, text: str) -> None:
    assert java_text(value, single=single) == text


def test_chars_are_padded_as_hive_pads_them() -> None:
    assert hive_text("ab", "char(5)") == "ab   "
