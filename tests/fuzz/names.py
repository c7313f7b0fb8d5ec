"""Names of directories and files below a table, as a listing brings them."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_acid.acid.directory import acid_directory, base_format_files
from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.acid.names import parse_directory_name
from airflow_provider_acid.acid.write_ids import TableWriteIds, ValidTxnList, compactor_list
from tests.harness.fuzzing.subject import Subject

_MOST_CHARACTERS = 1024
"""Of a path; S3 has no longer keys, and HDFS no more than 1,000 directories inside each other."""

_WRITE_IDS = compactor_list(TableWriteIds("d.t", 20, frozenset({18}), frozenset({4, 7})))
_TXNS = ValidTxnList(30, (29,), (21,))


def seeds() -> Sequence[bytes]:
    """Tables with bases, deltas, original files, and what streaming leaves."""
    return ["\n".join(paths).encode() for paths in (
        ("base_0000005_v0000012/bucket_00000", "base_0000005_v0000012/_metadata_acid",
         "delta_0000006_0000006_0000/bucket_00000_0", "delete_delta_0000008_0000009/bucket_00001",
         "delta_0000004_0000004_0001/bucket_00000", "delta_0000010_0000012_v0000021/bucket_00000"),
        ("000000_0", "000000_0_copy_1", "000001_0", "delta_0000001_0000003/bucket_00000",
         "delta_0000001_0000003/bucket_00000_flush_length", "HIVE_UNION_SUBDIR_1/000000_0"),
        ("base_-9223372036854775808/bucket_00000", "base_0000003/_orc_acid_version", ".hive-staging/x",
         "_tmp/y", "delta_0000019_0000020/bucket_04095"),
    )]  # fmt: skip


def read(document: bytes) -> None:
    """Names that are understood are written so that they are understood again."""
    paths = [path[:_MOST_CHARACTERS] for path in document.decode(errors="replace").split("\n")]
    directories = {path[:place] for path in paths for place, sign in enumerate(path) if sign == "/"}
    listing = Listing(tuple(FileEntry(path, 100) for path in paths if path), tuple(sorted(directories)))
    formats = {file.partition("/")[0]: "compacted" for file in base_format_files(listing)}
    directory = acid_directory(listing, _WRITE_IDS, _TXNS, formats)
    for found in directory.directories:
        assert parse_directory_name(str(found.name)) == found.name


SUBJECT = Subject("names", seeds, read)
