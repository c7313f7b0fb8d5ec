"""A stripe read in batches is the stripe read whole."""

from __future__ import annotations

import io
import threading
import weakref
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from airflow_provider_acid.exceptions import CorruptFileError, StorageError
from airflow_provider_acid.merge.files.source_files import KEY_FIELDS, SourceReader
from airflow_provider_acid.merge.orc import stripe_batches
from airflow_provider_acid.merge.orc.sections import Sections
from airflow_provider_acid.merge.orc.stripe_batches import decoded_bytes, number_bytes, rows_of_a_batch
from airflow_provider_acid.merge.orc.tail import read_tail_section
from airflow_provider_acid.plan.plan import SyntheticIds
from tests.harness.forced_batches import batches_of
from tests.unit.merge.acid_files import bucket_property
from tests.unit.merge.orc_tails import Tail
from tests.unit.merge.striped_files import BASE, STREAM, content, striped_partition

IDS = SyntheticIds(0, bucket_property())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    partition = striped_partition(tmp_path_factory.mktemp("striped"))
    return {name: content(partition, name) for name in (BASE, STREAM)}


class Watched(io.BytesIO):
    """A file that counts its reads, and fails behind a position."""

    def __init__(self, found: bytes, readable_bytes: int | None = None) -> None:
        super().__init__(found)
        self.readable_bytes = len(found) if readable_bytes is None else readable_bytes
        self.reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self.reads += 1
        if self.tell() >= self.readable_bytes:
            raise StorageError("the file", "cannot be read", "ask its storage")
        return super().read(size)


def reader_of(found: bytes, ids: SyntheticIds | None = None, again: io.BytesIO | None = None) -> SourceReader:
    return SourceReader("the file", io.BytesIO(found), lambda: again or io.BytesIO(found), ids, 1000)


def read(reader: SourceReader, rows: int, fields: Sequence[str] | None = None) -> list[list[pa.RecordBatch]]:
    """All stripes in batches of so many rows."""
    with batches_of(rows):
        return [list(reader.read_batches(stripe, fields)) for stripe in range(len(reader.tail.stripes))]


def whole(reader: SourceReader, fields: Sequence[str] | None = None) -> list[pa.Table]:
    stripes = read(reader, 1 << 40, fields)
    assert all(len(batches) == 1 for batches in stripes)
    return [pa.Table.from_batches(batches) for batches in stripes]


@pytest.mark.parametrize("fields", [None, KEY_FIELDS])
@pytest.mark.parametrize("rows", [1, 7, 99, 100])
@pytest.mark.parametrize("name", [BASE, STREAM])
def test_batches_are_the_rows_of_the_stripe_in_their_order(
    name: str, rows: int, fields: list[str] | None, files: dict[str, bytes]
) -> None:
    reader = reader_of(files[name])
    stripes = read(reader, rows, fields)
    assert [pa.Table.from_batches(batches) for batches in stripes] == whole(reader, fields)
    assert len(stripes) == len(reader.tail.stripes) > 1
    assert max(batch.num_rows for batches in stripes for batch in batches) == rows


@pytest.mark.parametrize("fields", [None, KEY_FIELDS])
@pytest.mark.parametrize("names", [["a", "b"], ["__filename", "__batch_index"], ["a.b", "a"], ["A", "a"], ["c1", "c0"]])
def test_rows_without_ids_get_them_whatever_their_columns_are_called(
    names: list[str], fields: list[str] | None
) -> None:
    output = io.BytesIO()
    columns: list[pa.Array[Any]] = [pa.array(range(100)), pa.array([f"text {number}" for number in range(100)])]
    orc.write_table(pa.Table.from_arrays(columns, names=names), output)
    reader = reader_of(output.getvalue(), IDS)
    (batches,) = read(reader, 7, fields)
    found = pa.Table.from_batches(batches)
    assert [found] == whole(reader, fields)
    assert found.column("rowId").to_pylist() == list(range(1000, 1100))
    assert [batch.num_rows for batch in batches] == [7] * 14 + [2]


def test_who_stops_early_reads_nothing_more(files: dict[str, bytes]) -> None:
    again = Watched(files[BASE])
    reader = reader_of(files[BASE], again=again)
    threads = threading.active_count()
    with batches_of(1), closing(reader.read_batches(3)) as batches:
        next(batches)
    assert again.closed
    assert again.reads > 0
    assert threading.active_count() == threads
    assert read(reader_of(files[BASE]), 7) != []


@pytest.mark.parametrize("wanted_batches", [1, 1000])
def test_no_thread_holds_the_file_when_its_batches_have_ended(wanted_batches: int, files: dict[str, bytes]) -> None:
    """A thread of Arrow's that lets go of a file of Python's while Python ends has the process aborted.

    Without waiting for it about one file in twenty is still held.
    """
    held = 0
    for _ in range(300):
        file = io.BytesIO(files[BASE])
        seen = weakref.ref(file)
        with closing(stripe_batches.stripe_batches(file, sections_of(files[BASE]), 3, 6, 7)) as batches:
            for _ in zip(range(wanted_batches), batches, strict=False):
                pass
        del file, batches
        held += seen() is not None
    assert held == 0


@pytest.mark.parametrize("fields", [None, KEY_FIELDS])
def test_a_file_that_cannot_be_read_is_refused_by_name_with_what_its_storage_says(
    fields: list[str] | None, files: dict[str, bytes]
) -> None:
    place = Tail(files[BASE]).footer.stripes[4]
    again = Watched(files[BASE], place.offset + 1)
    reader = reader_of(files[BASE], again=again)
    with batches_of(7), pytest.raises(CorruptFileError, match="the file: cannot be read exactly .*ask its storage"):
        list(reader.read_batches(4, fields))
    assert again.closed


@pytest.mark.parametrize(
    ("rows", "in_memory_bytes", "batch_rows"),
    [
        (0, 0, 1),
        (1_000_000, 64 << 20, 1_000_000),
        (1_000_000, (64 << 20) + 1, 62_499),
        (100_000_000, 16 * 5 * 100_000_000, 52_428),
        (100_000_000, 100_000_000, 65_536),
        (1000, 1 << 30, 3),
        (3, 1 << 40, 1),
    ],
)
def test_a_batch_has_as_many_rows_as_take_little_memory(rows: int, in_memory_bytes: int, batch_rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stripe_batches, "WHOLE_STRIPE_BYTES", 64 << 20)
        patch.setattr(stripe_batches, "MAX_BATCH_ROWS", 65_536)
        assert rows_of_a_batch(rows, in_memory_bytes) == batch_rows


def sections_of(found: bytes) -> Sections:
    return Sections.of(read_tail_section(io.BytesIO(found), len(found)))


COLUMNS: dict[str, Any] = {
    "numbers": pa.array(range(1000)),
    "texts": pa.array([f"text {number}" * 20 for number in range(1000)]),
    "bytes": pa.array([b"x" * number for number in range(1000)]),
    "few texts": pa.array(["the same text"] * 1000),
    "NULLs": pa.nulls(1000, pa.string()),
    "lists of texts": pa.array([["text"] * (number % 50) for number in range(1000)]),
    "maps": pa.array([[("key", 2.5)] * 10] * 1000, pa.map_(pa.string(), pa.float64())),
}


@pytest.mark.parametrize("with_statistics", [True, False])
@pytest.mark.parametrize("column", COLUMNS)
def test_a_stripe_is_not_taken_for_smaller_than_it_is(column: str, with_statistics: bool) -> None:
    output = io.BytesIO()
    orc.write_table(pa.table({"a": COLUMNS[column]}), output, compression="ZLIB")
    sections = sections_of(output.getvalue())
    if not with_statistics:
        sections.metadata.ClearField("stripeStats")
    found = decoded_bytes(sections, 0)
    assert found >= COLUMNS[column].nbytes or not with_statistics
    assert found >= number_bytes(1000, 1)
    if with_statistics:
        assert found <= 8 * COLUMNS[column].nbytes + 100_000


def test_a_file_is_opened_again_for_batches_only(files: dict[str, bytes]) -> None:
    opened: list[io.BytesIO] = []

    def again() -> io.BytesIO:
        opened.append(io.BytesIO(files[BASE]))
        return opened[-1]

    reader = SourceReader("the file", io.BytesIO(files[BASE]), again)
    for rows, times in ((100, 0), (99, 10)):
        read(reader, rows)
        assert len(opened) == times
    assert all(file.closed for file in opened)
