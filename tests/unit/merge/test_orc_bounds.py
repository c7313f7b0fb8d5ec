"""A tail that no writer makes is refused by name, before memory or time is spent on what it announces."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest

from airflow_provider_acid.exceptions import AcidError, CorruptFileError, UnsupportedTableError
from airflow_provider_acid.merge.files.orc_stripes import look_at
from airflow_provider_acid.merge.files.source_files import SourceReader, damage_named
from airflow_provider_acid.merge.orc import bounds as orc_bounds
from airflow_provider_acid.merge.orc import codec as orc_codec
from airflow_provider_acid.merge.orc.codec import MAX_BLOCK_BYTES, CodecError, CompressionKind, decompress
from airflow_provider_acid.merge.orc.messages import message_class
from airflow_provider_acid.merge.orc.schema import Kind
from airflow_provider_acid.merge.orc.tail import read_tail
from airflow_provider_acid.plan.plan import SyntheticIds
from tests.unit.merge.acid_files import orc_content
from tests.unit.merge.orc_tails import Tail

BLOCK = 4096
PLAIN = bytes(1 << 20)


def chunk(packed: bytes) -> bytes:
    return (len(packed) << 1).to_bytes(3, "little") + packed


def deflated(plain: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return deflate.compress(plain) + deflate.flush()


PACKED = {
    CompressionKind.ZLIB: deflated(PLAIN),
    CompressionKind.ZSTD: bytes(pa.Codec("zstd").compress(PLAIN, asbytes=True)),
    CompressionKind.SNAPPY: bytes(pa.Codec("snappy").compress(PLAIN, asbytes=True)),
    CompressionKind.LZ4: bytes(pa.Codec("lz4_raw").compress(PLAIN, asbytes=True)),
}


@pytest.mark.parametrize("kind", PACKED)
def test_a_chunk_that_holds_more_than_a_block_is_refused(kind: CompressionKind) -> None:
    assert decompress(chunk(PACKED[kind]), kind, len(PLAIN)) == PLAIN
    with pytest.raises(CodecError):
        decompress(chunk(PACKED[kind]), kind, BLOCK)


def test_zlib_is_never_asked_for_more_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = zlib.decompressobj

    class Counted:
        def __init__(self, wbits: int) -> None:
            self._inflate = real(wbits=wbits)

        def decompress(self, data: bytes, max_length: int) -> bytes:
            asked.append(max_length)
            return self._inflate.decompress(data, max_length)

        @property
        def eof(self) -> bool:
            return self._inflate.eof

    monkeypatch.setattr(zlib, "decompressobj", Counted)
    with pytest.raises(CodecError, match="more than the block size of 4096"):
        decompress(chunk(PACKED[CompressionKind.ZLIB]), CompressionKind.ZLIB, BLOCK)
    assert asked == [BLOCK + 1]


def test_zstd_is_never_asked_for_more_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real: Any = pa.CompressedInputStream

    class Counted:
        def __init__(self, source: Any, compression: str) -> None:
            self._stream = real(source, compression)

        def read(self, size: int) -> Any:
            asked.append(size)
            return self._stream.read(size)

    monkeypatch.setattr(pa, "CompressedInputStream", Counted)
    with pytest.raises(CodecError, match="more than the block size of 4096"):
        decompress(chunk(PACKED[CompressionKind.ZSTD]), CompressionKind.ZSTD, BLOCK)
    assert asked == [BLOCK + 1]


@pytest.mark.parametrize("kind", PACKED)
def test_a_section_of_many_chunks_is_refused_at_the_limit(
    kind: CompressionKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orc_codec, "MAX_SECTION_BYTES", 3 * len(PLAIN))
    assert decompress(chunk(PACKED[kind]) * 3, kind, len(PLAIN)) == PLAIN * 3
    with pytest.raises(CodecError, match="a section of its tail has more than"):
        decompress(chunk(PACKED[kind]) * 4, kind, len(PLAIN))


def test_a_section_that_is_not_compressed_has_the_same_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orc_codec, "MAX_SECTION_BYTES", 10)
    assert decompress(bytes(10), CompressionKind.NONE, 0) == bytes(10)
    with pytest.raises(CodecError, match="more than 10 bytes"):
        decompress(bytes(11), CompressionKind.NONE, 0)


def test_a_section_of_empty_chunks_is_refused() -> None:
    with pytest.raises(CodecError, match="more than 65536 chunks"):
        decompress(b"\x01\x00\x00" * 65_537, CompressionKind.ZLIB, BLOCK)


ROWS = [(number, f"text {number}") for number in range(20_000)]
SCHEMA = "struct<a:bigint,b:string>"


@pytest.fixture(scope="module")
def content() -> bytes:
    """Several stripes."""
    found = orc_content(SCHEMA, ROWS, stripe_size=4096, batch_size=100, compression_block_size=65_536)
    assert len(Tail(found).footer.stripes) == 3
    return found


def no_stripes(tail: Tail) -> None:
    """All overlap the first."""
    first = tail.footer.stripes[0]
    for stripe in tail.footer.stripes:
        stripe.offset = first.offset


def descending(tail: Tail) -> None:
    places = [(stripe.offset, stripe.dataLength) for stripe in tail.footer.stripes]
    for stripe, (offset, length) in zip(tail.footer.stripes, reversed(places), strict=True):
        stripe.offset, stripe.dataLength = offset, length


def at(name: str, value: int, stripe: int = -1) -> Callable[[Tail], None]:
    def change(tail: Tail) -> None:
        setattr(tail.footer.stripes[stripe], name, value)

    return change


def with_rows(rows: int) -> Callable[[Tail], None]:
    def change(tail: Tail) -> None:
        tail.footer.numberOfRows += rows - tail.footer.stripes[0].numberOfRows
        tail.footer.stripes[0].numberOfRows = rows

    return change


def told_more_rows(more: int) -> Callable[[Tail], None]:
    def change(tail: Tail) -> None:
        tail.footer.numberOfRows += more

    return change


def with_types(*nodes: tuple[int, tuple[int, ...], tuple[str, ...]]) -> Callable[[Tail], None]:
    def change(tail: Tail) -> None:
        del tail.footer.types[:]
        for kind, subtypes, names in nodes:
            tail.footer.types.add(kind=kind, subtypes=subtypes, fieldNames=names)

    return change


def nested(levels: int) -> Callable[[Tail], None]:
    lists = [(int(Kind.LIST), (level + 1,), ()) for level in range(levels - 1)]
    return with_types(*lists, (int(Kind.INT), (), ()))


STRUCT, LIST, MAP, INT = int(Kind.STRUCT), int(Kind.LIST), int(Kind.MAP), int(Kind.INT)

TAILS: dict[str, tuple[Callable[[Tail], None], str]] = {
    "overlapping stripes": (no_stripes, "a stripe begins before the one before it ends"),
    "descending stripes": (descending, "a stripe begins before the one before it ends"),
    "a stripe in the magic": (at("offset", 0, 0), "a stripe begins before the one before it ends"),
    "a stripe behind the data": (at("dataLength", 1 << 40), "a stripe reaches behind the end of the data"),
    "a stripe at 2^64 - 1": (at("offset", (1 << 64) - 1), "a stripe reaches behind the end of the data"),
    "a stripe without a footer": (at("footerLength", 0), "a stripe's footer has 0 bytes"),
    "a stripe of 2^31 rows": (with_rows(1 << 31), "a stripe has 2147483648 rows"),
    "a row less than its stripes have": (told_more_rows(-1), "its stripes have 20000 rows, its footer says 19999"),
    "a row more than its stripes have": (told_more_rows(1), "its stripes have 20000 rows, its footer says 20001"),
    "no types": (with_types(), "it has no list of types"),
    "a loop of types": (with_types((LIST, (0,), ())), "not in column order"),
    "a type in two places": (with_types((STRUCT, (1, 1), ("a", "b")), (INT, (), ())), "not in column order"),
    "a type that is not there": (with_types((LIST, (1,), ())), "not in column order"),
    "a type far away": (with_types((LIST, (1 << 31,), ())), "not in column order"),
    "a loose type": (with_types((STRUCT, (), ()), (INT, (), ())), "has loose ends"),
    "a list of nothing": (with_types((LIST, (), ())), "a list among its types has 0 types below it"),
    "a map of one": (with_types((MAP, (1,), ()), (INT, (), ())), "a map among its types has 1 types below it"),
    "an int of ints": (with_types((INT, (1,), ()), (INT, (), ())), "a int among its types has 1 types below it"),
    "a field without a name": (with_types((STRUCT, (1,), ()), (INT, (), ())), "has 0 names of fields"),
    "an unknown type": (with_types((99, (), ())), "99 is not a valid Kind"),
    "101 types inside each other": (nested(101), "its types are nested deeper than 100"),
    "100,000 types inside each other": (nested(100_000), "it has 100000 types, 65536 at most"),
}


@pytest.mark.parametrize("case", TAILS)
def test_a_tail_that_cannot_be_true_is_refused_by_name(case: str, content: bytes) -> None:
    change, reason = TAILS[case]
    tail = Tail(content)
    change(tail)
    changed = tail.sealed()
    with pytest.raises(CorruptFileError, match=f"hostile: is not a complete ORC file \\(.*{reason}"):
        read_tail(io.BytesIO(changed), "hostile")
    with pytest.raises(CorruptFileError, match=f"hostile: is not a complete ORC file \\(.*{reason}"):
        look_at("hostile", lambda: closing(io.BytesIO(changed)))


def test_100_types_inside_each_other_are_read(content: bytes) -> None:
    tail = Tail(content)
    nested(100)(tail)
    assert sum(1 for _ in read_tail(io.BytesIO(tail.sealed()), "file").schema.walk()) == 100


def resealed(content: bytes, **fields: int) -> bytes:
    """With another postscript, and all sections as they are."""
    postscript: Any = message_class("PostScript").FromString(content[-1 - content[-1] : -1])
    for name, value in fields.items():
        setattr(postscript, name, value)
    last: bytes = postscript.SerializeToString()
    return content[: -1 - content[-1]] + last + bytes([len(last)])


@pytest.mark.parametrize("block_bytes", [0, 1, 1023, MAX_BLOCK_BYTES + 1, 1 << 60, (1 << 64) - 1])
def test_a_block_size_that_no_writer_uses_is_refused(block_bytes: int, content: bytes) -> None:
    with pytest.raises(CorruptFileError, match=f"hostile: .*its blocks have {block_bytes} bytes"):
        read_tail(io.BytesIO(resealed(content, compressionBlockSize=block_bytes)), "hostile")


@pytest.mark.parametrize(("number", "name"), [(3, "lzo"), (6, "number 6"), (1 << 31, "number 2147483648")])
def test_a_compression_that_is_not_read_is_refused_as_such(number: int, name: str, content: bytes) -> None:
    changed = resealed(content, compression=number)
    for read in (lambda file: read_tail(file, "hostile"), lambda file: look_at("hostile", lambda: closing(file))):
        with pytest.raises(UnsupportedTableError, match=f"hostile: its compression {name} is not supported"):
            read(io.BytesIO(changed))


def test_a_tail_above_the_limit_is_not_read(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_provider_acid.merge.orc.tail.MAX_TAIL_BYTES", len(Tail(content).end) - 1)
    with pytest.raises(CorruptFileError, match=f"its tail has {len(Tail(content).end)} bytes"):
        read_tail(io.BytesIO(content), "hostile")


@pytest.mark.parametrize(("limit", "most", "reason"), [
    ("MAX_STRIPES", 2, "stripes, 2 at most"), ("MAX_TYPES", 2, "types, 2 at most"),
    ("MAX_STATISTICS", 11, "more than 11 statistics"),
])  # fmt: skip
def test_entries_are_counted_before_they_are_read(
    limit: str, most: int, reason: str, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orc_bounds, limit, most)
    with pytest.raises(CorruptFileError, match=reason):
        read_tail(io.BytesIO(content), "hostile")


@pytest.mark.parametrize("field", ["softwareVersion", "metadata", "names"])
def test_a_text_that_is_no_utf_8_is_refused(field: str, content: bytes) -> None:
    tail = Tail(orc_content(SCHEMA, ROWS[:3], {"kee": b""}, compression=pyorc.CompressionKind.NONE))
    tail.footer.softwareVersion = "kee" if field == "softwareVersion" else ""
    if field != "metadata":
        tail.footer.ClearField("metadata")
    if field == "names":
        tail.footer.types[0].fieldNames[0] = "kee"
    with pytest.raises(CorruptFileError, match="is not UTF-8"):
        read_tail(io.BytesIO(tail.sealed().replace(b"kee", b"k\xff\xfe")), "hostile")


@pytest.mark.parametrize("error", [
    pa.ArrowInvalid("bad"), pa.ArrowMemoryError("much"), MemoryError(), OSError("gone"), RuntimeError("orc"),
    pyorc.ParseError("bad"), ValueError("odd"), OverflowError("big"), KeyError("k"), TypeError("t"), RecursionError(),
])  # fmt: skip
def test_whatever_a_reader_of_orc_raises_names_the_file(error: Exception) -> None:
    with pytest.raises(CorruptFileError, match="hostile: cannot be read exactly"), damage_named("hostile"):
        raise error


def test_errors_of_the_family_stay_as_they_are() -> None:
    with pytest.raises(AcidError) as caught, damage_named("hostile"):
        raise UnsupportedTableError("file", "reason", "remedy")
    assert caught.type is UnsupportedTableError


def stripe_footer_changed(content: bytes, change: Callable[[Any], None]) -> bytes:
    """A file of one stripe with another stripe footer."""
    tail = Tail(content)
    (stripe,) = tail.footer.stripes
    start = stripe.offset + stripe.indexLength + stripe.dataLength
    footer = message_class("StripeFooter").FromString(content[start : start + stripe.footerLength])
    change(footer)
    packed = footer.SerializeToString()
    tail.content = content[:start] + packed + tail.end
    stripe.footerLength = len(packed)
    return tail.sealed()


def zone(name: str) -> Callable[[Any], None]:
    def change(footer: Any) -> None:
        footer.writerTimezone = name

    return change


def large_dictionary(footer: Any) -> None:
    footer.columns[2] = message_class("ColumnEncoding")(kind=3, dictionarySize=(1 << 32) - 1).SerializeToString()


def odd_encoding(footer: Any) -> None:
    footer.columns[2] = message_class("ColumnEncoding")(kind=9).SerializeToString()


def stream_of_nothing(footer: Any) -> None:
    footer.streams[0].column = 77


def long_stream(footer: Any) -> None:
    footer.streams[0].length = 1 << 40


def one_encoding_less(footer: Any) -> None:
    del footer.columns[2]


def many_streams(footer: Any) -> None:
    for _ in range(100):
        footer.streams.add()


STRIPE_FOOTERS: dict[str, tuple[Callable[[Any], None], str]] = {
    "a zone that leads elsewhere": (zone("../../../dev/zero"), "is no time zone"),
    "a zone from the root": (zone("/dev/zero"), "is no time zone"),
    "a zone with a null": (zone("UTC\0"), "is no time zone"),
    "a long zone": (zone("x" * 5000), "is no time zone"),
    "a dictionary of 4,294,967,295": (large_dictionary, "a dictionary of 4294967295 entries"),
    "an unknown encoding": (odd_encoding, "it has encoding 9"),
    "an encoding too few": (one_encoding_less, "it has encodings of 2 columns"),
    "a stream of no column": (stream_of_nothing, "it has a stream of column 77"),
    "a stream longer than the stripe": (long_stream, "its streams are longer than the stripe"),
    "too many streams": (many_streams, "streams of 3 columns"),
}


@pytest.mark.parametrize("case", STRIPE_FOOTERS)
def test_a_stripe_footer_that_cannot_be_true_is_refused_before_a_library_reads_the_stripe(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, reason = STRIPE_FOOTERS[case]
    changed = stripe_footer_changed(orc_content(SCHEMA, ROWS[:10], compression=pyorc.CompressionKind.NONE), change)
    ids = SyntheticIds(1, 536_870_912)
    reader = SourceReader("hostile", io.BytesIO(changed), lambda: io.BytesIO(changed), ids)
    monkeypatch.setattr(reader, "_whole", lambda *_: pytest.fail("a library reads the stripe"))
    with pytest.raises(CorruptFileError, match=f"hostile: has a damaged stripe footer \\(.*{reason}"):
        list(reader.read_batches(0))
