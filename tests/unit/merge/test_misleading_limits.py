"""No limit of a written file is NaN or leaves one out: readers skip by limits, and would miss rows that are there."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyorc
import pytest
from pyorc.predicates import Predicate, PredicateColumn

from airflow_provider_acid.exceptions import ConfigurationError, StorageError, VerificationError
from airflow_provider_acid.merge.files.answers import Merged
from airflow_provider_acid.merge.files.misleading_limits import without_misleading_limits
from airflow_provider_acid.merge.stitch import bucket_rows as rows_output
from airflow_provider_acid.plan.plan import CopiedStripes, OrcOptions
from airflow_provider_acid.storages.local import LocalStorage
from tests.unit.compaction.copying_storage import CopyingStorage
from tests.unit.merge.acid_files import STAGING, Partition, insert
from tests.unit.merge.orc_tails import Tail

NAN = math.nan
ROW_INDEX = 6
BLOOM_FILTERS = (7, 8)

WAYS: dict[str, tuple[str, Any]] = {"arrow": ("bigint", 5), "exact": ("timestamp", (-5, 250_000_000))}

# where the NaN is -> the values of two deltas that a merge puts into one row group
PLACES: dict[str, tuple[list[float | None], list[float | None]]] = {
    "first": ([NAN, 3.5], [1.5, -2.25]),
    "later": ([1.5, None, 0.5], [3.0, NAN]),
    "only": ([NAN], [NAN, None]),
    "alone in its file": ([NAN], [1.5]),
}

TYPES: dict[str, Any] = {
    "double": lambda value: value,
    "float": lambda value: value,
    "struct<n:int,x:double>": lambda value: (1, value),
    "array<float>": lambda value: [value],
    "map<string,double>": lambda value: {"k": value},
    "struct<s:array<struct<x:float>>>": lambda value: ([(value,), None],),
}


class Written:
    """A file taken apart, down to its row indexes."""

    def __init__(self, path: Path) -> None:
        self.content = path.read_bytes()
        self.tail = Tail(self.content)
        self.footer, self.stripes = self.tail.footer, self.tail.footer.stripes

    def data(self) -> list[bytes]:
        """The data streams of every stripe."""
        starts = [(stripe.offset + stripe.indexLength, stripe.dataLength) for stripe in self.stripes]
        return [self.content[start : start + length] for start, length in starts]

    def row_indexes(self) -> Iterator[tuple[int, Any]]:
        """Column id and ``RowIndex``, stripe after stripe."""
        for stripe, footer in zip(self.stripes, self.stripe_footers(), strict=True):
            position = stripe.offset
            for stream in footer.streams:
                if stream.kind == ROW_INDEX:
                    yield stream.column, self.tail.unpacked("RowIndex", position, stream.length)
                position += stream.length
            assert position == stripe.offset + stripe.indexLength + stripe.dataLength

    def stripe_footers(self) -> list[Any]:
        return [
            self.tail.unpacked(
                "StripeFooter", stripe.offset + stripe.indexLength + stripe.dataLength, stripe.footerLength
            )
            for stripe in self.stripes
        ]

    def streams(self) -> list[tuple[int, int, bytes]]:
        """Kind, column and bytes of all streams but row indexes."""
        found = []
        for stripe, footer in zip(self.stripes, self.stripe_footers(), strict=True):
            position = stripe.offset
            for stream in footer.streams:
                found.append((stream.kind, stream.column, self.content[position : position + stream.length]))
                position += stream.length
        return [stream for stream in found if stream[0] != ROW_INDEX]

    def statistics(self) -> Iterator[tuple[int, Any]]:
        """Column id and statistics: of the file, of its stripes, of their row groups."""
        yield from enumerate(self.footer.statistics)
        for stripe in self.tail.metadata.stripeStats:
            yield from enumerate(stripe.colStats)
        for column, index in self.row_indexes():
            for entry in index.entry:
                yield column, entry.statistics

    def positions(self) -> list[tuple[int, list[list[int]]]]:
        return [(column, [list(entry.positions) for entry in index.entry]) for column, index in self.row_indexes()]


def has_nan(statistics: Any) -> bool:
    part = statistics.doubleStatistics
    return any(math.isnan(number) for number in (part.minimum, part.maximum, part.sum))


def without_part(statistics: Any) -> Any:
    copied = type(statistics)()
    copied.CopyFrom(statistics)
    copied.ClearField("doubleStatistics")
    return copied


def merge(partition: Partition, monkeypatch: pytest.MonkeyPatch | None = None, **orc: Any) -> Merged:
    """A merge; with ``monkeypatch`` one that leaves the writer's statistics as they are."""
    if monkeypatch is None:
        return partition.merge(orc=OrcOptions(**orc), stripe_copy=CopiedStripes.NEVER)
    with monkeypatch.context() as patch:
        patch.setattr(rows_output, "without_misleading_limits", lambda storage, path, *more: path)
        return partition.merge(orc=OrcOptions(**orc), stripe_copy=CopiedStripes.NEVER)


def written(partition: Partition, merged: Merged) -> Written:
    assert merged.attempt is not None
    path = partition.path / merged.attempt
    assert path.stat().st_size == merged.file.size_bytes
    return Written(path)


def check_only_nan_columns_changed(partition: Partition, before: Merged, after: Merged) -> Written:
    """Everything is as the writer wrote it, but for the limits of columns that hold a NaN."""
    old, new = written(partition, before), written(partition, after)
    nan_columns = {column for column, found in enumerate(old.footer.statistics) if has_nan(found)}
    assert nan_columns
    expected = [(id_, without_part(found) if id_ in nan_columns else found) for id_, found in old.statistics()]
    assert list(new.statistics()) == expected
    assert not any(has_nan(found) for _, found in new.statistics())
    assert new.data() == old.data()
    assert new.streams() == old.streams()
    assert new.positions() == old.positions()
    # NaN is not equal to itself.
    assert repr(partition.read(after)) == repr(partition.read(before))
    assert new.footer.metadata == old.footer.metadata
    assert [stripe.numberOfRows for stripe in new.stripes] == [stripe.numberOfRows for stripe in old.stripes]
    ends = [(file.footer.contentLength, len(file.content) - len(file.tail.end)) for file in (old, new)]
    assert ends[1][0] - ends[0][0] == ends[1][1] - ends[0][1]
    return new


def deltas(partition: Partition, values: Sequence[Sequence[Any]], more: Any) -> None:
    for write_id, of_delta in enumerate(values, 1):
        events = [insert(write_id, row_id, value, more) for row_id, value in enumerate(of_delta)]
        partition.write(f"delta_000000{write_id}_000000{write_id}_0000", events)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", TYPES)
def test_limits_of_columns_that_mislead_are_unknown_and_all_else_stays(
    tmp_path: Path, kind: str, place: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_other, other = WAYS[way]
    partition = Partition(tmp_path, (kind, of_other))
    deltas(partition, [[TYPES[kind](value) for value in values] for values in PLACES[place]], other)
    check_only_nan_columns_changed(partition, merge(partition, monkeypatch), merge(partition))


@pytest.mark.usefixtures("whole_stripes")
@pytest.mark.parametrize(
    ("compression", "way"),
    [("none", "arrow"), ("zlib", "arrow"), ("snappy", "arrow"), ("lz4", "arrow"), ("zstd", "arrow"), ("zlib", "exact")],
)
def test_every_row_group_of_every_stripe_is_rid_of_them(
    tmp_path: Path, compression: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_other, other = WAYS[way]
    partition = Partition(tmp_path, ("double", of_other, "bigint", "string", "double"))
    chance = random.Random(7)
    rows = [(chance.random(), other, chance.getrandbits(60), f"text {number}", 0.5) for number in range(30_000)]
    for number in (0, 5_000, 29_999):
        rows[number] = (NAN, *rows[number][1:])
    partition.write("delta_0000001_0000001_0000", [insert(1, row_id, *row) for row_id, row in enumerate(rows)])
    options: dict[str, Any] = {
        "compression": compression,
        "stripe_bytes": 4096,
        "compression_block_bytes": 65_536,
        "row_index_stride": 1000,
        "bloom_filter_columns": ("c2", "c3"),
    }
    new = check_only_nan_columns_changed(
        partition, merge(partition, monkeypatch, **options), merge(partition, **options)
    )
    groups = [len(index.entry) for column, index in new.row_indexes() if column == 7]
    assert len(groups) == len(new.stripes) > 2
    assert sum(groups) > 1.5 * len(groups)
    certain = [found.HasField("doubleStatistics") for column, found in new.statistics() if column == 11]
    assert set(certain) == {True}


def in_javas_order(value: float) -> tuple[bool, float, float]:
    """``Double.compareTo``: NaN is above all, and -0.0 below 0.0."""
    return (True, 0.0, 0.0) if math.isnan(value) else (False, value, math.copysign(1, value))


def hive_looks_at(statistics: Any, equal: bool, value: float) -> bool:
    """``RecordReaderImpl.evaluatePredicateRange`` of Hive 3's ORC for ``a = value`` and ``a <> value``."""
    part = statistics.doubleStatistics
    if not statistics.HasField("doubleStatistics"):
        return True
    low, point, high = (in_javas_order(number) for number in (part.minimum, value, part.maximum))
    return low <= point <= high if equal else not low == point == high


# Measured on Hive 3.1.3: the second delta's row, found before a merge without the pass, is not found after it.
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["double", "float"])
@pytest.mark.parametrize(
    ("values", "equal"),
    [
        pytest.param(([NAN], [1.5]), True, id="a = 1.5 behind a NaN"),
        pytest.param(([1.5], [NAN]), False, id="a <> 1.5, a NaN behind it"),
    ],
)
def test_a_row_that_hive_found_before_is_found_after(
    tmp_path: Path, kind: str, way: str, values: Any, equal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = Partition(tmp_path, (kind, WAYS[way][0]))
    deltas(partition, values, WAYS[way][1])

    def looked_at(merged: Merged) -> set[bool]:
        of_column = [found for column, found in written(partition, merged).statistics() if column == 7]
        assert len(of_column) == 3
        return {hive_looks_at(found, equal, 1.5) for found in of_column}

    assert looked_at(merge(partition, monkeypatch)) == {False}
    assert looked_at(merge(partition)) == {True}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("kind", "of_column"), [("double", pyorc.TypeKind.DOUBLE), ("float", pyorc.TypeKind.FLOAT)])
def test_orcs_own_library_takes_limits_that_are_not_there_as_unknown(
    tmp_path: Path, kind: str, of_column: pyorc.TypeKind, way: str
) -> None:
    partition = Partition(tmp_path, (kind, WAYS[way][0], kind))
    events = [[insert(write_id, 0, number, WAYS[way][1], 0.5)] for write_id, number in ((1, NAN), (2, 1.5))]
    for write_id, delta in enumerate(events, 1):
        partition.write(f"delta_000000{write_id}_000000{write_id}_0000", delta)
    merged = merge(partition)
    assert merged.attempt is not None

    def rows(predicate: Predicate) -> int:
        with (tmp_path / str(merged.attempt)).open("rb") as file:
            return sum(1 for _ in pyorc.Reader(file, predicate=predicate))

    with_nan, without = PredicateColumn(of_column, index=7), PredicateColumn(of_column, index=9)
    # The library filters by limits only, and hands out all rows of the row groups that are left.
    for predicate in (with_nan == 1.5, ~(with_nan == 1.5), with_nan < 2.0, with_nan > 1.0, ~(with_nan < 2.0)):
        assert rows(predicate) == 2
    assert rows(without == 1.5) == 0


def test_a_file_without_nan_is_written_once_and_keeps_its_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = Partition(tmp_path, ("double", "float"))
    deltas(partition, [[-math.inf, None, -0.0], [1e308]], None)
    created: list[str] = []
    create = LocalStorage.create

    def counted(self: LocalStorage, path: str) -> AbstractContextManager[BinaryIO]:
        created.append(path)
        return create(self, path)

    monkeypatch.setattr(LocalStorage, "create", counted)
    merged = merge(partition)
    assert created == [merged.attempt]
    for column, found in written(partition, merged).statistics():
        if column == 7:
            limits = found.doubleStatistics
            assert (limits.minimum, limits.maximum) == (-math.inf, 1e308)


def test_the_first_file_goes_when_the_second_has_its_place(tmp_path: Path) -> None:
    partition = Partition(tmp_path, ("double", "bigint"))
    deltas(partition, PLACES["first"], 5)
    merged = merge(partition)
    assert [f"{STAGING}/attempts/{name}" for name in partition.attempts()] == [merged.attempt]


@pytest.mark.parametrize("limits", [{"minimum": NAN}, {"maximum": NAN}, {"sum": NAN}, {"sum": None}, {"maximum": None}])
def test_limits_are_uncertain_by_each_of_their_numbers(
    tmp_path: Path, limits: dict[str, float | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = Partition(tmp_path, ("double", "double"))
    deltas(partition, [[0.5], [1.5]], 2.5)
    path = str(merge(partition, monkeypatch).attempt)
    tail = Tail((tmp_path / path).read_bytes())
    for name, number in limits.items():
        part = tail.footer.statistics[7].doubleStatistics
        part.ClearField(name) if number is None else setattr(part, name, number)
    (tmp_path / path).write_bytes(tail.sealed())
    new = Written(tmp_path / without_misleading_limits(partition.storage, path))
    assert {column for column, found in new.statistics() if found.HasField("doubleStatistics")} == {8}


def test_other_indexes_of_a_column_stay(tmp_path: Path) -> None:
    partition = Partition(tmp_path, ("double",))
    written_by_pyorc = partition.write("delta_0000001_0000001_0000", [insert(1, 0, NAN)], bloom_filter_columns=[7])
    path = f"{STAGING}/attempts/bucket_00000.1"
    (tmp_path / written_by_pyorc.path).rename(tmp_path / path)
    old = Written(tmp_path / path)
    assert [column for kind, column, _ in old.streams() if kind in BLOOM_FILTERS] == [7]
    new = Written(tmp_path / without_misleading_limits(partition.storage, path))
    assert new.streams() == old.streams()


def test_a_full_disk_while_writing_again_is_an_error_that_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = Partition(tmp_path, ("double", "bigint"))
    deltas(partition, PLACES["first"], 5)
    path = merge(partition, monkeypatch).attempt
    assert path is not None

    class Full:
        def write(self, data: bytes) -> int:
            raise OSError(28, "No space left on device")

    @contextmanager
    def create(self: LocalStorage, path: str) -> Iterator[Any]:
        yield Full()

    monkeypatch.setattr(LocalStorage, "create", create)
    with pytest.raises(StorageError, match="cannot be written again .*No space left"):
        without_misleading_limits(partition.storage, path)
    assert (tmp_path / path).exists()


def cut_stream(footer: Any) -> None:
    footer.streams[0].length -= 1


def longer_index(footer: Any) -> None:
    footer.streams[0].length += 1


def longer_data(footer: Any) -> None:
    footer.streams[-1].length += 1


def shifted(footer: Any) -> None:
    """The last index loses a byte to the first data."""
    is_index = [stream.kind == ROW_INDEX for stream in footer.streams]
    boundary = is_index.index(False)
    footer.streams[boundary - 1].length -= 1
    footer.streams[boundary].length += 1


@pytest.mark.parametrize("damage", [cut_stream, longer_index, longer_data, shifted])
def test_a_stripe_that_is_not_laid_out_as_its_footer_says_is_an_error(
    tmp_path: Path, damage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = Partition(tmp_path, ("double", "bigint"))
    deltas(partition, PLACES["first"], 5)
    path = merge(partition, monkeypatch, compression="none").attempt
    assert path is not None
    file = Written(tmp_path / path)
    (stripe,), (footer,) = file.stripes, file.stripe_footers()
    damage(footer)
    start = stripe.offset + stripe.indexLength + stripe.dataLength
    changed = footer.SerializeToString()
    assert len(changed) == stripe.footerLength
    (tmp_path / path).write_bytes(file.content[:start] + changed + file.content[start + len(changed) :])
    with pytest.raises(VerificationError, match="cannot be read back"):
        without_misleading_limits(partition.storage, path)
    assert partition.attempts() == [Path(path).name]


def test_only_on_an_object_store_the_first_file_may_stay_for_want_of_something_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = Partition(tmp_path, ("double",))
    path = f"{STAGING}/attempts/bucket_00000.1"
    (tmp_path / partition.write("delta_0000001_0000001_0000", [insert(1, 0, NAN)]).path).rename(tmp_path / path)

    def cannot(self: LocalStorage, paths: object) -> None:
        raise ConfigurationError("boto3", "is not installed", "-")

    monkeypatch.setattr(LocalStorage, "delete", cannot)
    rewritten = without_misleading_limits(CopyingStorage(str(tmp_path)), path)
    assert (tmp_path / path).exists()
    assert (tmp_path / rewritten).exists()
    with pytest.raises(ConfigurationError, match="boto3"):
        without_misleading_limits(partition.storage, path)
