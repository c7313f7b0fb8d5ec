"""Tails are read with every codec, and written so that other readers see what was put in."""

from __future__ import annotations

import io
import random
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyorc
import pytest

from airflow_provider_acid.exceptions import CorruptFileError, UnsupportedTableError
from airflow_provider_acid.merge.orc.codec import CodecError, CompressionKind, compress, decompress
from airflow_provider_acid.merge.orc.messages import message_class
from airflow_provider_acid.merge.orc.schema import Kind, OrcType, parse_hive_type
from airflow_provider_acid.merge.orc.tail import read_tail, reseal
from tests.unit.merge.acid_files import orc_content
from tests.unit.merge.orc_tails import Tail

KINDS = [kind for kind in CompressionKind if kind is not CompressionKind.LZO]
SAMPLES = [b"", b"a", b"abc" * 5000, random.Random(1).randbytes(9000), b"x" * 70_000, b"ab" * 7 + bytes(300)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("plain", SAMPLES, ids=range(len(SAMPLES)))
def test_what_is_compressed_is_decompressed(plain: bytes, kind: CompressionKind) -> None:
    assert decompress(compress(plain, kind, 4096), kind, 4096) == plain


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not CompressionKind.NONE])
@pytest.mark.parametrize("damage", ["cut", "overwritten"])
def test_a_damaged_section_is_refused(kind: CompressionKind, damage: str) -> None:
    section = compress(b"abcdefgh" * 400, kind, 4096)
    with pytest.raises(CodecError):
        decompress(section[:-1] if damage == "cut" else section[:3] + b"\xff" * (len(section) - 3), kind, 4096)


def test_lzo_is_refused_by_name() -> None:
    with pytest.raises(CodecError, match="lzo is not supported"):
        decompress(b"\x02\x00\x00x", CompressionKind.LZO, 4096)


def test_encrypted_columns_are_refused_as_such_not_as_damage() -> None:
    content = Tail(written("zlib")).with_footer(encryption=b"\x0a\x00")
    with pytest.raises(UnsupportedTableError, match="file: has encrypted columns. Remedy: compact this partition with"):
        read_tail(io.BytesIO(content), "file")


def written(compression: str, rows: int = 10) -> bytes:
    kind = pyorc.CompressionKind[compression.upper()]
    schema = "struct<a:int,b:struct<c:string,d:decimal(9,2)>>"
    return orc_content(schema, [(number, None) for number in range(rows)], compression=kind)


@pytest.mark.parametrize("compression", ["none", "zlib", "snappy", "lz4", "zstd"])
def test_types_metadata_and_calendar_are_replaced_and_all_else_stays(compression: str) -> None:
    content = written(compression)
    schema = OrcType(
        Kind.STRUCT,
        (
            OrcType(Kind.INT),
            OrcType(
                Kind.STRUCT,
                (
                    OrcType(Kind.VARCHAR, parameters={"length": 7}),
                    OrcType(Kind.DECIMAL, parameters={"precision": 9, "scale": 2}),
                ),
                ("e f", "g"),
            ),
        ),
        ("A", "B"),
    )
    sealed = reseal(content, schema, {"key": b"value\x00"}, 2)
    before, after = (read_tail(io.BytesIO(data), "file") for data in (content, sealed))
    assert (after.schema, after.calendar, dict(after.user_metadata)) == (schema, 2, {"key": b"value\x00"})
    assert (after.stripes, after.rows, after.statistics) == (before.stripes, before.rows, before.statistics)
    reader = pyorc.Reader(io.BytesIO(sealed))
    assert reader.user_metadata == {"key": b"value\x00"}
    assert [row[0] for row in reader] == list(range(10))
    assert orc.ORCFile(pa.BufferReader(sealed)).schema.field("A").type == pa.int32()


def test_a_long_tail_is_read_whole() -> None:
    content = written("none")
    tail = read_tail(io.BytesIO(content), "file")
    sealed = reseal(content, tail.schema, {"key": b"v" * 100_000}, 0)
    assert read_tail(io.BytesIO(sealed), "file").user_metadata["key"] == b"v" * 100_000


@pytest.mark.parametrize("length", range(0, 400, 13))
def test_a_file_cut_anywhere_is_refused(length: int) -> None:
    content = written("zlib")
    assert len(content) > 300
    with pytest.raises(CorruptFileError, match="some file: is not a complete ORC file"):
        read_tail(io.BytesIO(content[: min(length, len(content) - 1)]), "some file")


def test_a_footer_whose_counts_disagree_is_refused() -> None:
    content = written("none")
    postscript: Any = message_class("PostScript").FromString(content[-1 - content[-1] : -1])
    end = len(content) - 1 - content[-1]
    footer: Any = message_class("Footer").FromString(content[end - postscript.footerLength : end])
    footer.numberOfRows += 1
    changed = content[: end - postscript.footerLength] + footer.SerializeToString() + content[end:]
    with pytest.raises(CorruptFileError, match="its stripes have 10 rows, its footer says 11"):
        read_tail(io.BytesIO(changed), "file")


@pytest.mark.parametrize("text", [
    "int", "decimal(10,2)", "varchar(5)", "char(3)", "array<int>", "map<string,array<decimal(38,18)>>",
    "struct<a:int,b:struct<c:map<int,string>,d:timestamp>,e:array<char(2)>>", "binary", "date", "boolean",
])  # fmt: skip
def test_a_hive_type_is_parsed_and_printed(text: str) -> None:
    assert str(parse_hive_type("c", text)) == text


@pytest.mark.parametrize(("text", "printed"), [
    ("decimal", "decimal(10,0)"), ("decimal(5)", "decimal(5,0)"), ("struct<`a b`:int>", "struct<a b:int>"),
    ("DECIMAL(10, 2)", "decimal(10,2)"), ("struct<a b:int>", "struct<a b:int>"),
])  # fmt: skip
def test_other_spellings_of_a_hive_type_are_understood(text: str, printed: str) -> None:
    assert str(parse_hive_type("c", text)) == printed


@pytest.mark.parametrize("text", [
    "", "void", "array", "array<", "array<int", "array<int,int>", "map<int>", "struct<a>", "struct<>", "int int",
    "varchar", "varchar()", "decimal(1,2,3)", "uniontype<int,string>", "int>",
])  # fmt: skip
def test_a_type_that_is_not_understood_is_refused(text: Any) -> None:
    with pytest.raises(UnsupportedTableError, match="column c: the type"):
        parse_hive_type("c", text)
