"""Stripes of several ORC files in one: the bytes stay, the statistics fit, other readers read all of it."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any, BinaryIO
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.orc as orc
import pyorc
import pytest

from airflow_provider_acid.exceptions import CorruptFileError, VerificationError
from airflow_provider_acid.merge.files import orc_stripes
from airflow_provider_acid.merge.files.orc_stripes import (
    StripeCopy,
    StripeSource,
    groups_that_fit,
    look_at,
    verify_stripes,
    write_stripes,
)
from airflow_provider_acid.merge.orc.tail import read_tail
from tests.unit.merge.acid_files import orc_content
from tests.unit.merge.orc_tails import Tail

ALL_TYPES = (
    "struct<b:boolean,t:tinyint,i:int,l:bigint,f:float,d:double,s:string,v:varchar(20),c:char(6),x:binary,"
    "ts:timestamp,da:date,de:decimal(38,18),sm:decimal(10,2),a:array<int>,m:map<string,int>,r:struct<q:int,w:string>>"
)


def row(number: int) -> tuple[Any, ...]:
    if number % 11 == 0:
        return (None,) * 17
    text = f"text {number}"
    return (
        number % 2 == 0,
        number % 100,
        number * 7,
        -number,
        number / 4,
        -number / 8,
        text,
        text,
        "char",
        text.encode(),
        datetime(1960 + number % 60, 1, 2, 3, 4, 5, number % 1000 * 1000, timezone.utc),
        date(1950 + number % 90, 2, 3),
        Decimal(number) / 8,
        Decimal(number * 100 + 1) / 100,
        [number, None],
        {text: number},
        (number, text),
    )


def orc_file(
    rows: Iterable[tuple[Any, ...]],
    schema: str = ALL_TYPES,
    metadata: Mapping[str, bytes] | None = None,
    **options: Any,
) -> bytes:
    small = {"stripe_size": 4096, "batch_size": 50, "compression_block_size": 65536}
    return orc_content(schema, rows, metadata, **{**small, **options})


def opener(content: bytes) -> Callable[[], AbstractContextManager[BinaryIO]]:
    return lambda: closing(io.BytesIO(content))


def source(content: bytes, name: str = "file") -> StripeSource:
    return look_at(name, opener(content))


def merged(contents: Sequence[bytes], **options: Any) -> tuple[bytes, StripeCopy]:
    output = io.BytesIO()
    copy = write_stripes([source(content) for content in contents], output, **options)
    verify_stripes("output", io.BytesIO(output.getvalue()), copy)
    return output.getvalue(), copy


def stripes_of(content: bytes) -> list[bytes]:
    tail = read_tail(io.BytesIO(content), "file")
    return [
        content[stripe.offset : stripe.offset + stripe.index_bytes + stripe.data_bytes + stripe.footer_bytes]
        for stripe in tail.stripes
    ]


def rows_of(content: bytes) -> list[Any]:
    return list(pyorc.Reader(io.BytesIO(content)))


KINDS = [pyorc.CompressionKind(number) for number in (0, 1, 2, 4, 5)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_stripes_of_all_files_follow_each_other_unchanged(kind: pyorc.CompressionKind) -> None:
    files = [
        orc_file(map(row, range(start, start + count)), compression=kind)
        for start, count in ((0, 700), (700, 3), (703, 900))
    ]
    content, copy = merged(files)
    assert len(stripes_of(content)) >= (10 if kind is pyorc.CompressionKind.NONE else 3)
    assert stripes_of(content) == [stripe for file in files for stripe in stripes_of(file)]
    assert rows_of(content) == [row for file in files for row in rows_of(file)]
    assert copy.rows == len(rows_of(content)) == 1603
    arrow = orc.ORCFile(io.BytesIO(content))
    assert arrow.nrows == 1603
    assert arrow.read() == pa.concat_tables([orc.ORCFile(io.BytesIO(file)).read() for file in files])


def test_stripe_statistics_move_with_their_stripes() -> None:
    files = [orc_file(map(row, range(start, start + 600))) for start in (0, 600)]
    content, _ = merged(files)
    assert Tail(content).stripe_statistics() == [one for file in files for one in Tail(file).stripe_statistics()]


def test_merged_statistics_are_those_of_a_file_written_in_one_go() -> None:
    files = [orc_file(map(row, range(start, start + 600))) for start in (0, 600, 1200)]
    content, _ = merged(files)
    in_one_go = orc_file(map(row, range(1800)))
    assert Tail(content).statistics() == Tail(in_one_go).statistics()


@pytest.mark.parametrize("seed", range(8))
def test_a_reader_that_prunes_by_statistics_finds_every_row(seed: int) -> None:
    chance = random.Random(seed)
    values = [[(chance.choice((None, chance.randint(-9, 9))),) for _ in range(chance.randint(1, 60))] for _ in range(4)]
    content, _ = merged([orc_file(rows, "struct<i:int>") for rows in values])
    for wanted in range(-10, 11):
        found = pyorc.Reader(
            io.BytesIO(content), predicate=pyorc.predicates.PredicateColumn(pyorc.TypeKind.INT, "i") == wanted
        )
        assert [row for row in found if row[0] == wanted] == [
            row for rows in values for row in rows if row[0] == wanted
        ]


def test_files_of_one_shape_become_one_in_order_and_the_others_keep_to_themselves() -> None:
    plain = {name: source(orc_file([(number,)], "struct<i:int>"), name) for number, name in enumerate("abc")}
    other = source(orc_file([("x",)], "struct<s:string>"), "other")
    found = groups_that_fit([plain["a"], other, plain["b"], plain["c"]])
    assert [[file.name for file in group] for group in found] == [["a", "b", "c"], ["other"]]


ROWS = [(number,) for number in range(20)]


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("types", orc_file(ROWS, "struct<i:bigint>")),
        ("names of columns", orc_file(ROWS, "struct<j:int>")),
        ("number of columns", orc_file([(1, 2)], "struct<i:int,j:int>")),
        ("compression", orc_file(ROWS, "struct<i:int>", compression=pyorc.CompressionKind.ZSTD)),
        ("compression block size", orc_file(ROWS, "struct<i:int>", compression_block_size=131072)),
        ("row index stride", orc_file(ROWS, "struct<i:int>", row_index_stride=1000)),
        ("file version", Tail(orc_file(ROWS, "struct<i:int>")).with_version(0, 11)),
        ("user metadata", orc_file(ROWS, "struct<i:int>", metadata={"k": b"v"})),
        ("calendar", Tail(orc_file(ROWS, "struct<i:int>")).with_footer(calendar=2)),
        ("writer", Tail(orc_file(ROWS, "struct<i:int>")).with_unknown_footer_field(9, 4)),
        ("a field that is not known", Tail(orc_file(ROWS, "struct<i:int>")).with_unknown_footer_field(50, 1)),
        ("writer version", Tail(orc_file(ROWS, "struct<i:int>")).with_postscript(writerVersion=1)),
        ("no statistics", Tail(orc_file(ROWS, "struct<i:int>")).without_statistics()),
        ("encryption", Tail(orc_file(ROWS, "struct<i:int>")).with_footer(encryption=b"\x0a\x00")),
    ],
)
def test_files_that_differ_do_not_share_a_file(what: str, other: bytes) -> None:
    base = orc_file(ROWS, "struct<i:int>")
    assert len(groups_that_fit([source(base), source(base)])) == 1
    assert len(groups_that_fit([source(base), source(other)])) == 2, what
    if what in ("no statistics", "encryption"):
        assert len(groups_that_fit([source(other), source(other)])) == 2, what


def test_files_that_count_timestamps_in_different_zones_do_not_share_a_file() -> None:
    values = [(datetime(2020, 1, 1, tzinfo=timezone.utc),)]
    files = [orc_file(values, "struct<t:timestamp>", timezone=ZoneInfo(zone)) for zone in ("UTC", "Europe/Berlin")]
    assert len(groups_that_fit(map(source, files))) == 2
    assert len(groups_that_fit([source(files[1]), source(files[1])])) == 1


def test_files_with_other_bloom_filters_do_not_share_a_file() -> None:
    """ORC's Java reader takes the filters of the stripe before where a stripe has none: Hive 3 would miss its rows."""
    plain = source(orc_file(ROWS, "struct<i:int>"))
    filtered = source(orc_file(ROWS, "struct<i:int>", bloom_filter_columns=[1]))
    assert len(groups_that_fit([plain, filtered])) == 2
    assert len(groups_that_fit([filtered, filtered])) == 1
    # As ALTER TABLE CONCATENATE makes them.
    together = io.BytesIO()
    write_stripes([plain, filtered], together)
    assert len(groups_that_fit([source(together.getvalue())] * 2)) == 2


def test_user_metadata_of_the_caller_takes_the_place_of_the_sources() -> None:
    files = [orc_file(ROWS, "struct<i:int>", metadata={"key": bytes([number])}) for number in (1, 2)]
    ignored = frozenset({"key"})
    sources = [look_at("file", opener(file), ignored) for file in files]
    assert len(groups_that_fit(sources)) == 1
    output = io.BytesIO()
    write_stripes(sources, output, user_metadata={"key": b"both"})
    assert pyorc.Reader(io.BytesIO(output.getvalue())).user_metadata == {"key": b"both"}


def test_files_without_rows_add_nothing() -> None:
    files = [orc_file([], "struct<i:int>"), orc_file(ROWS, "struct<i:int>"), orc_file([], "struct<i:int>")]
    content, _ = merged(files)
    assert rows_of(content) == ROWS
    assert Tail(content).statistics() == Tail(files[1]).statistics()
    assert rows_of(merged([files[0], files[2]])[0]) == []


def test_tails_that_would_grow_too_large_are_spread_over_files(monkeypatch: pytest.MonkeyPatch) -> None:
    file = source(orc_file(ROWS, "struct<i:int>"))
    monkeypatch.setattr(orc_stripes, "MAX_STATISTICS_BYTES", 2 * sum(one.ByteSize() for one in file.stripe_statistics))
    assert [len(group) for group in groups_that_fit([file] * 5)] == [2, 2, 1]


def test_progress_counts_the_sources_bytes() -> None:
    files = [orc_file(map(row, range(600)))] * 2
    told: list[int] = []
    merged(files, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == sum(map(len, files))


@pytest.mark.parametrize(
    "damage", [lambda content: content[:-1], lambda content: content[:100], lambda content: b"PAR1"]
)
def test_a_damaged_file_is_refused_by_name(damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(CorruptFileError, match="^file: is not a complete ORC file"):
        source(damage(orc_file(ROWS, "struct<i:int>")))


def test_a_file_that_changes_between_the_look_and_the_copy_is_refused() -> None:
    contents = iter(
        [orc_file(ROWS, "struct<i:int>"), orc_file([(number + 1,) for number in range(20)], "struct<i:int>")]
    )
    changing = look_at("file", lambda: closing(io.BytesIO(next(contents))))
    with pytest.raises(CorruptFileError, match="changed while it was being compacted"):
        write_stripes([changing], io.BytesIO())


@pytest.mark.parametrize("where", ["first stripe", "last stripe", "stripe statistics", "footer", "cut", "longer"])
def test_a_written_file_that_differs_is_noticed(where: str) -> None:
    plain = pyorc.CompressionKind.NONE
    content, copy = merged([orc_file([("text",), ("zebra",)], "struct<s:string>", compression=plain)] * 2)
    tail = copy.size_bytes - len(Tail(content).end)
    # The statistics of both stripes name the greatest value, then those of the file do.
    places = {"first stripe": 20, "last stripe": tail - 1, "stripe statistics": content.index(b"zebra", tail)}
    place = places.get(where, content.rindex(b"zebra"))
    broken = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
    broken = {"cut": content[:-1], "longer": content[:3] + b"\0" + content[3:]}.get(where, broken)
    with pytest.raises(VerificationError, match="^output: "):
        verify_stripes("output", io.BytesIO(broken), copy)
