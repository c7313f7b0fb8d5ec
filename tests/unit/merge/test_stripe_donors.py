"""What is missing, odd or unknown in a file, or would be read otherwise in another, is decoded."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyorc
import pytest

from airflow_provider_acid.exceptions import CorruptFileError, VerificationError
from airflow_provider_acid.merge.orc.codec import CompressionKind, compress
from airflow_provider_acid.plan.plan import CopiedStripes, OrcOptions
from tests.unit.merge.acid_files import Partition, bucket_property, delete, insert, read_events
from tests.unit.merge.orc_tails import Tail
from tests.unit.merge.striped_files import (
    BASE,
    DELETES,
    DELTA,
    STREAM,
    TYPES,
    attempt,
    content,
    source_stripes,
    striped_partition,
    stripes_of,
    values,
    write_in_stripes,
)

ALWAYS, NEVER = CopiedStripes.ALWAYS, CopiedStripes.NEVER


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return striped_partition(tmp_path)


def with_writer(writer: int, version: int, software: str) -> Any:
    def change(tail: Tail) -> None:
        tail.postscript.writerVersion = version
        tail.footer.writer, tail.footer.softwareVersion = writer, software

    return change


def limit(column: int, **part: int) -> Any:
    def change(tail: Tail) -> None:
        found = tail.metadata.stripeStats[4].colStats[column].intStatistics
        for name, value in part.items():
            setattr(found, name, value)

    return change


def without_limits(tail: Tail) -> None:
    tail.metadata.stripeStats[4].colStats[2].ClearField("intStatistics")


def null_keys(tail: Tail) -> None:
    tail.metadata.stripeStats[4].colStats[4].hasNull = True


def other_count(column: int) -> Any:
    def change(tail: Tail) -> None:
        tail.metadata.stripeStats[4].colStats[column].numberOfValues -= 1
        tail.footer.statistics[column].numberOfValues -= 1

    return change


def without_stripe_statistics(tail: Tail) -> None:
    del tail.metadata.stripeStats[3:]


def unknown_field(tail: Tail) -> None:
    tail.footer.types[9].MergeFromString(bytes([7 << 3 | 2, 0]))


def unknown_postscript_field(tail: Tail) -> None:
    tail.postscript.MergeFromString(bytes([7 << 3, 1]))


def other_header(tail: Tail) -> None:
    tail.footer.headerLength = 4


def version_0_11(tail: Tail) -> None:
    tail.postscript.version[:] = (0, 11)


ODD: dict[str, tuple[Any, int]] = {
    "of Hive 3": (with_writer(0, 7, ""), 10),
    "of Hive 4": (with_writer(0, 9, "1.8.5"), 10),
    "of the first Hive 3": (with_writer(0, 6, ""), 0),
    "of Trino": (with_writer(4, 6, ""), 0),
    "of an old C++ library": (with_writer(1, 6, ""), 0),
    "operation": (limit(1, maximum=1), 9),
    "lowest write id": (limit(2, minimum=2), 9),
    "highest bucket": (limit(3, maximum=bucket_property() + 1), 9),
    "lowest row id": (limit(4, minimum=401), 9),
    "highest row id": (limit(4, maximum=498), 9),
    "highest current write id": (limit(5, maximum=4), 9),
    "no limits": (without_limits, 9),
    "null keys": (null_keys, 9),
    "count of events": (other_count(0), 9),
    "count of rows": (other_count(6), 9),
    "no statistics of a stripe": (without_stripe_statistics, 0),
    "unknown field of a type": (unknown_field, 0),
    "unknown field of the postscript": (unknown_postscript_field, 0),
    "header": (other_header, 0),
    "version of the format": (version_0_11, 0),
}
"""By name: what is changed in a tail, and how many of ten stripes are copied all the same."""


@pytest.mark.parametrize(("change", "copied"), ODD.values(), ids=ODD)
def test_a_file_whose_tail_is_odd_missing_or_contradicts_its_rows_is_decoded(
    tmp_path: Path, change: Any, copied: int
) -> None:
    partition = Partition(tmp_path, TYPES)
    write_in_stripes(partition, BASE, [insert(3, row_id, *values(row_id)) for row_id in range(1000)])
    tail = Tail(content(partition, BASE))
    change(tail)
    overwrite(partition, tail.sealed())
    before, rows = source_stripes(partition), read_events(partition.path / BASE / "bucket_00000")
    merged = partition.merge(stripe_copy=ALWAYS)
    assert sum(stripe in before for stripe in stripes_of(attempt(partition, merged))) == copied
    assert partition.read(merged) == rows


@pytest.mark.parametrize(
    "orc",
    [OrcOptions(compression="snappy"), OrcOptions(row_index_stride=5000)],
    ids=["other compression", "other stride"],
)
def test_what_stands_once_in_the_tail_must_be_the_same_for_all(partition: Partition, orc: OrcOptions) -> None:
    before = source_stripes(partition)
    merged = partition.merge(stripe_copy=ALWAYS, orc=orc)
    assert not set(before) & set(stripes_of(attempt(partition, merged)))
    assert partition.read(merged) == partition.read(partition.merge(stripe_copy=NEVER, orc=orc))


def test_only_files_with_the_tables_own_columns_are_copied(tmp_path: Path) -> None:
    partition = Partition(tmp_path, ("bigint", "varchar(8)"))
    write_in_stripes(partition, BASE, [insert(3, n, n) for n in range(200)], types=["bigint"])
    write_in_stripes(partition, DELTA, [insert(6, n, n, "a") for n in range(200)], types=["bigint", "varchar(5)"])
    write_in_stripes(partition, STREAM, [insert(7, n, n, "b") for n in range(200)])
    before = source_stripes(partition)
    merged = partition.merge(stripe_copy=ALWAYS)
    after = stripes_of(attempt(partition, merged))
    assert [before.index(stripe) for stripe in after if stripe in before] == [4, 5]
    assert partition.read(merged) == partition.read(partition.merge(stripe_copy=NEVER))


def test_stripes_with_nan_are_decoded_and_lose_their_limits(tmp_path: Path) -> None:
    """Limits that Hive did not look at while there were deltas would hide rows once there are none."""
    partition = Partition(tmp_path, ("double", "double"))
    numbers = [float("nan") if row_id in (100, 350) else row_id / 2 for row_id in range(400)]
    write_in_stripes(partition, BASE, [insert(3, row_id, numbers[row_id], 0.5) for row_id in range(400)])
    before = source_stripes(partition)
    merged = partition.merge(stripe_copy=ALWAYS)
    found = attempt(partition, merged)
    assert [stripe in before for stripe in stripes_of(found)] == [True, False, True, False]
    tail = Tail(found)
    for column, expected in ((7, [True, False, True, False]), (8, [True] * 4)):
        limits = [stripe.colStats[column].HasField("doubleStatistics") for stripe in tail.metadata.stripeStats]
        assert limits == expected
        assert tail.footer.statistics[column].HasField("doubleStatistics") is (column == 8)
    assert len(partition.read(merged)) == 400


@pytest.mark.parametrize(
    ("kind", "wanted", "copied"),
    [
        ("int", True, [True, False]),
        ("int", False, [False, True]),
        # The C++ library may have got these wrong, or writes none.
        ("tinyint", True, [False, True]),
        ("varchar(5)", True, [False, True]),
        ("float", True, [False, True]),
    ],
)
def test_all_stripes_of_a_file_have_the_same_bloom_filters(
    tmp_path: Path, kind: str, wanted: bool, copied: list[bool]
) -> None:
    """ORC's Java reader goes on with those of the stripe before where one has none: Hive 3 would miss its rows."""
    partition = Partition(tmp_path, (kind,))
    value = "a" if kind == "varchar(5)" else 1
    partition.write(DELTA, [insert(6, row_id, value) for row_id in range(9)], bloom_filter_columns=[7])
    partition.write(STREAM, [insert(7, row_id, value) for row_id in range(9)])
    before = source_stripes(partition)
    options = OrcOptions(bloom_filter_columns=("c0",) if wanted else ())
    found = attempt(partition, partition.merge(orc=options, stripe_copy=ALWAYS))
    assert [stripe in before for stripe in stripes_of(found)] == copied
    reader = pyorc.Reader(io.BytesIO(found))
    filters = [reader.read_stripe(stripe).bloom_filter_columns for stripe in range(reader.num_of_stripes)]
    assert filters == [(7,) if wanted and kind == "int" else ()] * 2


def test_the_blocks_of_a_file_are_as_large_as_the_largest(tmp_path: Path) -> None:
    partition = Partition(tmp_path, TYPES)
    for name, write_id, block_bytes in ((BASE, 3, 65536), (DELTA, 6, 262144), (STREAM, 7, 131072)):
        events = [insert(write_id, row_id, *values(row_id)) for row_id in range(50)]
        partition.write(name, events, compression_block_size=block_bytes)
    merged = partition.merge(stripe_copy=ALWAYS)
    assert Tail(attempt(partition, merged)).postscript.compressionBlockSize == 262144
    assert stripes_of(attempt(partition, merged)) == source_stripes(partition)


def test_a_file_whose_counts_contradict_each_other_is_decoded_or_refused_as_ever(tmp_path: Path) -> None:
    """Counts of values are compared with the sources' where no row goes."""
    partition = Partition(tmp_path, TYPES)
    write_in_stripes(partition, BASE, [insert(3, row_id, *values(row_id)) for row_id in range(200)])
    tail = Tail(content(partition, BASE))
    tail.footer.statistics[7].numberOfValues += 1
    overwrite(partition, tail.sealed())
    for mode in (NEVER, ALWAYS):
        with pytest.raises(VerificationError, match="its columns hold"):
            partition.merge(stripe_copy=mode)
    partition.write(DELETES, [delete(3, 5, 10)])
    before = source_stripes(partition)
    assert not set(before) & set(stripes_of(attempt(partition, partition.merge(stripe_copy=ALWAYS))))


def test_a_row_that_is_null_as_a_whole_is_refused_as_ever(tmp_path: Path) -> None:
    partition = Partition(tmp_path)
    partition.write(BASE, [insert(3, 0, 1), (0, 3, bucket_property(), 1, 3, None)])
    for mode in (NEVER, ALWAYS):
        with pytest.raises(CorruptFileError, match="holds an insert without a row"):
            partition.merge(stripe_copy=mode)


def test_a_stripe_whose_footer_has_an_unknown_field_is_decoded(tmp_path: Path) -> None:
    partition = Partition(tmp_path)
    partition.write(BASE, [insert(3, row_id, row_id) for row_id in range(9)])
    tail = Tail(content(partition, BASE))
    (stripe,) = tail.footer.stripes
    start = stripe.offset + stripe.indexLength + stripe.dataLength
    footer: Any = tail.unpacked("StripeFooter", start, stripe.footerLength)
    footer.MergeFromString(bytes([9 << 3, 1]))
    kind, block_bytes = CompressionKind(tail.postscript.compression), tail.postscript.compressionBlockSize
    packed = compress(footer.SerializeToString(), kind, block_bytes)
    tail.content = tail.content[:start] + packed + tail.end
    tail.footer.contentLength += len(packed) - stripe.footerLength
    stripe.footerLength = len(packed)
    overwrite(partition, tail.sealed())
    before, merged = source_stripes(partition), partition.merge(stripe_copy=ALWAYS)
    assert stripes_of(attempt(partition, merged)) != before
    assert len(partition.read(merged)) == 9


def overwrite(partition: Partition, found: bytes) -> None:
    """Put another file in the place of the base's."""
    (partition.path / BASE / "bucket_00000").write_bytes(found)
    partition.rows.clear()
    partition.add(BASE)
