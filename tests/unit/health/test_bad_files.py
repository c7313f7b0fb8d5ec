"""A file of the health store that is garbled, cut, newer or far too large is passed over by name; the others count."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.health import parquet_files
from airflow_provider_acid.health.arrow_form import SCHEMA
from airflow_provider_acid.health.files import TableName, new_history_file, new_renewed_file, new_table_file
from airflow_provider_acid.health.json_lines import to_lines
from airflow_provider_acid.health.parquet_files import rows_in
from airflow_provider_acid.health.query import PartitionQuery, metastores_of, overview, page_of
from airflow_provider_acid.health.reader import HealthReader
from airflow_provider_acid.health.renewal import Renewed
from airflow_provider_acid.health.store import HealthStore
from tests.unit.health.test_history import TODAY, records

ROW: dict[str, Any] = {
    "metastore": "m", "database": "d", "table": "good", "partition": "", "state": "due", "reason": "12 deltas",
    "deltas": 12, "delete_deltas": 0, "evaluated_ms": 1_700_000_000_000, "directories": [],
}  # fmt: skip


def content(*rows: dict[str, Any], schema: pa.Schema = SCHEMA) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), file)
    return file.getvalue()


GOOD = content(ROW)


def with_other_field(name: str, kind: pa.DataType) -> bytes:
    place = SCHEMA.get_field_index(name)
    value = {pa.string(): "x", pa.int64(): 1}[kind]
    return content({**ROW, name: value}, schema=SCHEMA.set(place, pa.field(name, kind)))


def without_utf_8() -> bytes:
    """Declared as text; Parquet's reader does not look."""
    bad: Any = pa.array([b"\xff\xfe"]).view(pa.string())
    rows = pa.Table.from_pylist([ROW], schema=SCHEMA)
    file = io.BytesIO()
    pq.write_table(rows.set_column(SCHEMA.get_field_index("table"), "table", bad), file)
    return file.getvalue()


BAD: dict[str, bytes] = {
    "garbage": b"garbage" * 100,
    "nothing": b"",
    "cut": GOOD[:-20],
    "cut in front": GOOD[20:],
    "a footer of 2 GiB": GOOD[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1",
    "a column of another type": with_other_field("deltas", pa.string()),
    "a newer form": content({"metastore": "m"}, schema=pa.schema([("metastore", pa.string())])),
    "a name that is NULL": content({**ROW, "table": None}),
    "a state that is NULL": content({**ROW, "state": None}),
    "a name that is no UTF-8": without_utf_8(),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "health"
    place.mkdir()
    put(place, new_table_file(TableName("m", "d", "good")), GOOD)
    return place


def put(folder: Path, path: str, data: bytes) -> str:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(data)
    return path


PLACES: dict[str, Callable[[], str]] = {
    "a table's": lambda: new_table_file(TableName("m", "d", "bad")),
    "a renewed": lambda: new_renewed_file("m"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_of_figures_is_passed_over_by_name_and_the_others_are_shown(
    case: str, place: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = put(folder, PLACES[place](), BAD[case])
    reader = HealthReader(lambda: Storages().open(str(folder)))
    partitions = reader.health().partitions
    assert page_of(partitions, PartitionQuery(search="good")).rows[0]["table"] == "good"
    assert page_of(partitions, PartitionQuery()).total == 1
    assert (overview(partitions, "m")["partitions"], metastores_of(partitions)) == (1, ["m"])
    assert reader.directories("m", Entity("d", "bad")) == []
    assert any(path in line and "is passed over" in line for line in caplog.messages)


@pytest.mark.parametrize("case", BAD)
def test_a_bad_renewed_file_stops_no_evaluation(case: str, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(folder, new_renewed_file("m"), GOOD)
    path = put(folder, new_renewed_file("m"), BAD[case])
    store = HealthStore.at(str(folder), Storages())
    renewed = Renewed(store, "m", store.renewed_files("m"))
    assert renewed.of(TableName("m", "d", "good")).num_rows == 1
    assert any(path in line for line in caplog.messages)


@pytest.mark.parametrize("limit", ["EXCHANGE_FILE_BYTES", "MAX_FOOTER_BYTES", "MAX_PLAIN_BYTES", "_MAX_ROWS"])
def test_no_more_is_read_than_the_limits_say(
    limit: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert rows_in(io.BytesIO(GOOD), "file").num_rows == 1
    monkeypatch.setattr(parquet_files, limit, 0)
    monkeypatch.setattr(pq, "read_table", lambda *_, **__: pytest.fail("it is read"))
    assert rows_in(io.BytesIO(GOOD), "some file").num_rows == 0
    assert "some file" in caplog.text


@pytest.mark.parametrize("line", [
    b"garbage", b"[" * 100_000, b'{"a":' * 100_000, b"[]", b"1", b"\xff\xfe", b'{"format_version": 2}', b"9" * 5000,
])  # fmt: skip
def test_lines_that_are_no_records_are_named_and_the_others_count(
    line: bytes, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    path = put(folder, new_history_file(TODAY), line + b"\n" + to_lines(records()))
    reader = HealthReader(lambda: Storages().open(str(folder)))
    assert [record.id for record in reader.health().history] == ["a/0"]
    assert f"1 lines of the health store's file {path} are no records of this release" in caplog.text


def test_a_history_that_is_too_large_is_passed_over_by_name(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(folder, new_history_file(TODAY), to_lines(records()) * 100)
    monkeypatch.setattr("airflow_provider_acid.health.reader.EXCHANGE_FILE_BYTES", 1000)
    put(folder, new_history_file(TODAY), to_lines(records()))
    reader = HealthReader(lambda: Storages().open(str(folder)))
    assert [record.id for record in reader.health().history] == ["a/0"]
    assert path in caplog.text
