"""Files of insert-only tables are taken over with nothing of their content changed, or not at all."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as parquet
import pyarrow.parquet.encryption as encryption
import pyorc
import pytest

from airflow_provider_acid.exceptions import CorruptFileError, UnsupportedTableError, VerificationError
from airflow_provider_acid.merge.files import file_copy
from airflow_provider_acid.merge.files.answers import Merged
from airflow_provider_acid.plan.plan import BucketPlan, Column, FileFormat, OutputKind, SourceFile
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.plain_job import merge_bucket
from tests.unit.merge.acid_files import STAGING, major_plan, orc_content
from tests.unit.merge.orc_tails import Tail


class Bucket:
    """A bucket of an insert-only partition with these files."""

    def __init__(self, folder: Path, format: FileFormat, files: Mapping[str, bytes], number: int = 0) -> None:
        self.folder, self.storage = folder, LocalStorage(str(folder))
        for name, content in files.items():
            path = folder / "delta_0000001_0000001_0000" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        (folder / STAGING / "attempts").mkdir(parents=True)
        sources = tuple(SourceFile(f"delta_0000001_0000001_0000/{name}", len(files[name])) for name in files)
        self.plan = major_plan(
            folder,
            format,
            "base_0000001",
            columns=(Column("v", "bigint"),),
            high_water_mark=1,
            directories=("delta_0000001_0000001_0000",),
            buckets=(BucketPlan(OutputKind.ROWS, number, sources, ()),),
        )
        self.told: list[int] = []

    def copy(self) -> tuple[Merged, ...]:
        return merge_bucket(self.storage, self.plan, self.plan.buckets[0], self.told.append)

    def copied(self) -> dict[str, bytes]:
        """The written files by the names they will have."""
        found = {}
        for merged in self.copy():
            assert merged.attempt is not None
            assert merged.file.name is not None
            content = (self.folder / merged.attempt).read_bytes()
            assert (merged.file.size_bytes, merged.file.output) == (len(content), OutputKind.ROWS)
            assert merged.attempt.startswith(f"{STAGING}/attempts/{merged.file.name}.")
            found[merged.file.name] = content
        return found


@pytest.mark.parametrize(
    ("sentence", "files", "expected"),
    [
        ("plain text becomes one file", {"000000_0": b"a\n", "000000_0_copy_1": b"b\n"}, {"000000_0": b"a\nb\n"}),
        ("a last line gets its end", {"a": b"a", "b": b"b\nc", "d": b"d"}, {"000000_0": b"a\nb\nc\nd"}),
        ("an end of Mac lines is no end of Hive's", {"a": b"a\r", "b": b"\nb"}, {"000000_0": b"a\r\n\nb"}),
        ("an end of DOS lines is one", {"a": b"a\r\n", "b": b"b\r\n"}, {"000000_0": b"a\r\nb\r\n"}),
        ("empty lines are rows", {"a": b"\n", "b": b"\n\n"}, {"000000_0": b"\n\n\n"}),
        ("a backslash escapes no line end", {"a": b"a\\", "b": b"b"}, {"000000_0": b"a\\\nb"}),
        (
            "a byte order mark begins a file",
            {"a": b"\xef\xbb\xbfa", "b": b"b", "c": b"\xef\xbb\xbfc"},
            {"000000_0": b"\xef\xbb\xbfa\nb", "000000_0_copy_1": b"\xef\xbb\xbfc"},
        ),
        (
            "a byte order mark alone is no row, with a line end it would be one",
            {"a": b"\xef\xbb\xbf", "b": b"b", "c": b"c"},
            {"000000_0": b"\xef\xbb\xbf", "000000_0_copy_1": b"b\nc"},
        ),
        (
            "compressed text keeps to itself under its extension",
            {"a.gz": gzip.compress(b"a"), "b": b"b", "c.snappy": b"?", "d.tar.zst": b"!", "e": b"e"},
            {
                "000000_0": b"b\ne",
                "000000_0_copy_1.gz": gzip.compress(b"a"),
                "000000_0_copy_2.snappy": b"?",
                "000000_0_copy_3.tar.zst": b"!",
            },
        ),
        (
            "what no codec is known for, too",
            {"a.csv": b"a", "b.csv": b"b"},
            {"000000_0.csv": b"a", "000000_0_copy_1.csv": b"b"},
        ),
        ("files of 0 bytes are dropped", {"a": b"", "b": b"b", "c": b""}, {"000000_0": b"b"}),
        ("unless there is nothing else", {"a": b"", "b": b""}, {"000000_0": b""}),
    ],
)
def test_text(tmp_path: Path, sentence: str, files: dict[str, bytes], expected: dict[str, bytes]) -> None:
    assert Bucket(tmp_path, FileFormat.TEXT, files).copied() == expected, sentence


def test_text_with_lines_of_its_own_stays_in_its_files(tmp_path: Path) -> None:
    files = {"a": b"header\n1", "b": b"header\n2\n", "c.gz": b"zipped"}
    assert Bucket(tmp_path, FileFormat.APART, files, number=7).copied() == {
        "000007_0": b"header\n1",
        "000007_0_copy_1": b"header\n2\n",
        "000007_0_copy_2.gz": b"zipped",
    }


def parquet_file(*values: int) -> bytes:
    output = io.BytesIO()
    parquet.write_table(pa.table({"v": list(values)}), output)
    return output.getvalue()


def orc_file(*values: int, **options: Any) -> bytes:
    return orc_content("struct<v:bigint>", [(value,) for value in values], **options)


def test_parquet_is_copied_byte_by_byte(tmp_path: Path) -> None:
    files = {"000000_0": parquet_file(1, 2), "000000_0_copy_1": b"", "000001_0": parquet_file(3)}
    bucket = Bucket(tmp_path, FileFormat.PARQUET, files)
    assert bucket.copied() == {"000000_0": files["000000_0"], "000000_0_copy_1": files["000001_0"]}
    assert [(merged.file.rows_in, merged.file.rows_out) for merged in bucket.copy()] == [(2, 2), (1, 1)]


def test_orc_of_one_kind_becomes_one_file_and_the_rest_is_copied(tmp_path: Path) -> None:
    zlib, zstd = (pyorc.CompressionKind.ZLIB, pyorc.CompressionKind.ZSTD)
    files = {
        "000000_0": orc_file(1, 2, compression=zlib),
        "000000_0_copy_1": orc_file(3, compression=zstd),
        "000000_0_copy_2": orc_file(4, compression=zlib),
    }
    bucket = Bucket(tmp_path, FileFormat.ORC, files)
    found = bucket.copied()
    assert list(found) == ["000000_0", "000000_0_copy_1"]
    assert [row for (row,) in pyorc.Reader(io.BytesIO(found["000000_0"]))] == [1, 2, 4]
    assert found["000000_0_copy_1"] == files["000000_0_copy_1"]
    counts = [(merged.file.stripes, merged.file.rows_in, merged.file.rows_out) for merged in bucket.copy()]
    assert counts == [(2, 3, 3), (1, 1, 1)]


def test_encrypted_orc_is_copied_as_it_is(tmp_path: Path) -> None:
    content = Tail(orc_file(1)).with_footer(encryption=b"\x0a\x00")
    found = Bucket(tmp_path, FileFormat.ORC, {"a": content, "b": content}).copied()
    assert found == {"000000_0": content, "000000_0_copy_1": content}


class Keys(encryption.KmsClient):
    """Keys that are not kept: nobody needs them again."""

    def __init__(self, _: encryption.KmsConnectionConfig) -> None:
        super().__init__()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return f"wrapped by {master_key_identifier}"


def encrypted_parquet_file(*, plaintext_footer: bool) -> bytes:
    wanted = encryption.EncryptionConfiguration("k", column_keys={"k": ["v"]}, plaintext_footer=plaintext_footer)
    properties = encryption.CryptoFactory(Keys).file_encryption_properties(encryption.KmsConnectionConfig(), wanted)
    table, output = pa.table({"v": [1, 2]}), io.BytesIO()
    with parquet.ParquetWriter(output, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    return output.getvalue()


def test_encrypted_parquet_is_copied_as_it_is_where_its_footer_tells_its_rows(tmp_path: Path) -> None:
    content = encrypted_parquet_file(plaintext_footer=True)
    (merged,) = Bucket(tmp_path, FileFormat.PARQUET, {"a": content}).copy()
    assert merged.attempt is not None
    assert (merged.file.rows_out, (tmp_path / merged.attempt).read_bytes()) == (2, content)


def test_parquet_with_an_encrypted_footer_is_refused_as_such_not_as_damage(tmp_path: Path) -> None:
    content = encrypted_parquet_file(plaintext_footer=False)
    with pytest.raises(UnsupportedTableError, match="a: has an encrypted footer. Remedy: compact this partition with"):
        Bucket(tmp_path, FileFormat.PARQUET, {"a": content}).copy()


CONTENTS = {
    FileFormat.ORC: orc_file(1),
    FileFormat.PARQUET: parquet_file(1),
    FileFormat.TEXT: b"1\n",
    FileFormat.APART: b"1\n",
}


@pytest.mark.parametrize("format", [FileFormat.ORC, FileFormat.PARQUET])
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, format: FileFormat) -> None:
    bucket = Bucket(tmp_path, format, {"good": CONTENTS[format], "bad": CONTENTS[format][:-5]})
    with pytest.raises(CorruptFileError, match="bad: is not a complete"):
        bucket.copy()
    assert not any((tmp_path / STAGING / "attempts").iterdir())


@pytest.mark.parametrize("format", CONTENTS)
def test_a_file_that_is_not_the_planned_one_is_refused(tmp_path: Path, format: FileFormat) -> None:
    content = CONTENTS[format]
    bucket = Bucket(tmp_path, format, {"a": content, "b": content})
    other = {FileFormat.ORC: orc_file(*range(99)), FileFormat.PARQUET: parquet_file(*range(99))}.get(format, b"12\n")
    (tmp_path / "delta_0000001_0000001_0000" / "b").write_bytes(other)
    with pytest.raises(CorruptFileError, match=f"b: has {len(other)} bytes, it had {len(content)} when"):
        bucket.copy()


class Deceitful(LocalStorage):
    """A storage that gives back something else than was written.

    :param change: changes what was written.
    """

    def __init__(self, location: str, change: Callable[[BinaryIO], object]) -> None:
        super().__init__(location)
        self._change = change

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        with super().create(path) as file:
            yield file
            self._change(file)


def first_bytes(file: BinaryIO) -> None:
    """Where ORC has its first stripe."""
    file.seek(0)
    file.write(b"ORC?")


def last_bytes(file: BinaryIO) -> None:
    """Where ORC and Parquet have their tails."""
    file.seek(max(file.tell() - 20, 0))
    file.write(b"?")


def more_bytes(file: BinaryIO) -> None:
    file.write(b"more")


@pytest.mark.parametrize("change", [first_bytes, last_bytes, more_bytes])
@pytest.mark.parametrize("format", CONTENTS)
@pytest.mark.parametrize("count", [1, 2])
def test_what_reads_back_differently_does_not_count(
    tmp_path: Path, format: FileFormat, change: Callable[[BinaryIO], object], count: int
) -> None:
    bucket = Bucket(tmp_path, format, {str(number): CONTENTS[format] for number in range(count)})
    bucket.storage = Deceitful(str(tmp_path), change)
    with pytest.raises(VerificationError):
        bucket.copy()


class OtherReader:
    """A reader of ORC that finds one row too few."""

    num_of_stripes = 2

    def __init__(self, file: BinaryIO) -> None:
        pass

    def __len__(self) -> int:
        return 1


def test_what_another_reader_of_orc_cannot_read_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket(tmp_path, FileFormat.ORC, {name: CONTENTS[FileFormat.ORC] for name in "ab"})
    assert bucket.copied()
    monkeypatch.setattr(pyorc, "Reader", OtherReader)
    with pytest.raises(VerificationError, match=r"has \(rows, stripes\) \(1, 2\), its sources \(2, 2\)"):
        bucket.copy()

    def fail(file: BinaryIO) -> None:
        raise pyorc.ParseError("damaged")

    monkeypatch.setattr(pyorc, "Reader", fail)
    with pytest.raises(VerificationError, match="cannot be read back"):
        bucket.copy()


@pytest.mark.parametrize("format", CONTENTS)
def test_progress_ends_with_all_bytes_of_the_sources(tmp_path: Path, format: FileFormat) -> None:
    bucket = Bucket(tmp_path, format, {str(number): CONTENTS[format] for number in range(3)})
    bucket.copy()
    assert bucket.told == sorted(bucket.told)
    assert bucket.told[-1] == 3 * len(CONTENTS[format])


def test_files_larger_than_a_chunk_are_never_held_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_copy, "CHUNK_BYTES", 3)
    files = {"a": b"0123456789", "b": b"abcdefgh\n", "c": b"x"}
    bucket = Bucket(tmp_path, FileFormat.TEXT, files)
    assert bucket.copied() == {"000000_0": b"0123456789\nabcdefgh\nx"}
    assert bucket.told == [3, 6, 9, 10, 13, 16, 19, 20]
