"""The files of a full-ACID partition, by bucket and in the order of their rows' keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from airflow_provider_acid.acid.directory import BaseDirectory, DeltaDirectory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.listing import FileEntry
from airflow_provider_acid.acid.names import (
    MAX_BUCKET,
    NO_STATEMENT,
    BucketProperty,
    is_flush_length,
    parse_data_file_name,
    parse_original_file_name,
)
from airflow_provider_acid.exceptions import ConfigurationError, RefusedError, UnknownNameError, UnsupportedTableError
from airflow_provider_acid.plan.partition import PartitionState
from airflow_provider_acid.plan.plan import SourceFile, SyntheticIds

FilesByBucket = Mapping[int, tuple[SourceFile, ...]]

_FLUSH_LENGTH = "_flush_length"
_ORIGINALS_WRITE_ID = 0


def original_files(partition: PartitionState) -> FilesByBucket:
    """Files from before the table became transactional.

    Their rows are numbered per bucket through all files in the order of the paths (``OriginalReaderPair``), whatever
    directory they lie in.

    :raises UnknownNameError: a name without a bucket number, at which Hive's own readers fail.
    """
    found: dict[int, list[SourceFile]] = defaultdict(list)
    for file in partition.directory.originals:
        bucket = _original_bucket(partition.entity, file)
        if file.size_bytes:
            found[bucket].append(_synthetic(file, _ORIGINALS_WRITE_ID, bucket, NO_STATEMENT))
    return _frozen(found)


def directory_files(partition: PartitionState, directories: Iterable[BaseDirectory | DeltaDirectory]) -> FilesByBucket:
    """Data files of a base and deltas, given in the order of their keys.

    A file of 0 bytes is no ORC file and holds no rows; Hive skips it, too. So does one of which nothing is committed.

    :raises UnsupportedTableError: a bucket number that row ids cannot express, two files of one number, files with
        and without ACID columns in one directory, or the latter where Hive would not take them for such.
    :raises RefusedError: a streamed file is shorter than what its writer committed.
    """
    found: dict[int, list[SourceFile]] = defaultdict(list)
    for directory in directories:
        for bucket, file in _files_of(partition, directory):
            if file.size_bytes and file.committed_bytes != 0:
                found[bucket].append(file)
    return _frozen(found)


def side_files(directories: Iterable[BaseDirectory | DeltaDirectory]) -> tuple[SourceFile, ...]:
    """The ``_flush_length`` files of these directories."""
    return tuple(
        SourceFile(file.path, file.size_bytes)
        for directory in directories
        for file in directory.files
        if is_flush_length(file.name)
    )


def in_key_order(deltas: Iterable[DeltaDirectory]) -> list[DeltaDirectory]:
    """Deltas in the order of their rows' keys."""
    return sorted(deltas, key=lambda delta: (delta.name.min_write_id, delta.name.statement_id))


def has_raw_files(directories: Iterable[BaseDirectory | DeltaDirectory]) -> bool:
    """Whether any of these directories holds files without ACID columns, as LOAD DATA leaves them."""
    return any(parse_original_file_name(file.name) for directory in directories for file in directory.files)


def _files_of(partition: PartitionState, directory: BaseDirectory | DeltaDirectory) -> Iterator[tuple[int, SourceFile]]:
    raw = [file for file in directory.files if parse_original_file_name(file.name)]
    acid = [file for file in directory.files if parse_data_file_name(file.name)]
    if not raw:
        yield from _acid_files(partition, acid)
        return
    if acid:
        raise UnsupportedTableError(
            f"{directory.path} of table {partition.entity}",
            f"holds files with ACID columns ({acid[0].path}) and without ({raw[0].path})",
            "find out which of them belong to the table and move the others out of it",
        )
    write_id, statement = _raw_write_id(partition.entity, directory)
    for file in sorted(raw, key=lambda file: file.path):
        bucket = _original_bucket(partition.entity, file)
        yield bucket, _synthetic(file, write_id, bucket, statement)


def _raw_write_id(entity: Entity, directory: BaseDirectory | DeltaDirectory) -> tuple[int, int]:
    """Write id and statement of a directory that LOAD DATA made (``AcidUtils.MetaDataFile.isRawFormat``)."""
    if isinstance(directory, BaseDirectory):
        if not directory.compacted:
            return directory.write_id, NO_STATEMENT
    elif directory.name.min_write_id == directory.name.max_write_id and not directory.name.is_delete:
        return directory.name.min_write_id, directory.name.statement_id
    raise UnsupportedTableError(
        f"{directory.path} of table {entity}",
        "holds files named like those of LOAD DATA, which writes no directory of this kind",
        "find out what wrote them and move them out of the table",
    )


def _acid_files(partition: PartitionState, files: Iterable[FileEntry]) -> Iterator[tuple[int, SourceFile]]:
    by_bucket: dict[int, FileEntry] = {}
    for file in files:
        name = parse_data_file_name(file.name)
        assert name is not None
        _check_bucket(partition.entity, file, name.bucket)
        if name.bucket in by_bucket:
            raise UnsupportedTableError(
                f"{file.path} of table {partition.entity}",
                f"has the same bucket number as {by_bucket[name.bucket].path}",
                "find out which of the two task attempts was committed and move the other file out of the table",
            )
        by_bucket[name.bucket] = file
    for bucket, file in sorted(by_bucket.items()):
        yield bucket, SourceFile(file.path, file.size_bytes, _committed_bytes(partition, file))


def _committed_bytes(partition: PartitionState, file: FileEntry) -> int | None:
    side_file = file.path + _FLUSH_LENGTH
    if side_file not in partition.directory.flush_length_files:
        return None
    if side_file not in partition.flush_lengths:
        raise ConfigurationError(
            f"flush_lengths lacks {side_file}", "which says how much of the file is committed", "read every side file"
        )
    committed_bytes = partition.flush_lengths[side_file]
    if committed_bytes > file.size_bytes:
        raise RefusedError(
            f"{file.path} of table {partition.entity}",
            f"has {file.size_bytes} bytes, but {committed_bytes} are committed by its side file",
            "try again when its writer has closed it or its lease was recovered; if it stays so, the file is damaged",
        )
    return committed_bytes


def _synthetic(file: FileEntry, write_id: int, bucket: int, statement: int) -> SourceFile:
    bucket_property = BucketProperty(1, bucket, max(statement, 0)).encode()
    return SourceFile(file.path, file.size_bytes, synthetic=SyntheticIds(write_id, bucket_property))


def _original_bucket(entity: Entity, file: FileEntry) -> int:
    name = parse_original_file_name(file.name)
    if name is None:
        raise UnknownNameError(
            f"{file.path} of table {entity}",
            "lies outside of all ACID directories and has no bucket number in its name (as in 000000_0)",
            "find out what wrote it and move it out of the table",
        )
    _check_bucket(entity, file, name.bucket)
    return name.bucket


def _check_bucket(entity: Entity, file: FileEntry, bucket: int) -> None:
    if bucket > MAX_BUCKET:
        raise UnsupportedTableError(
            f"{file.path} of table {entity}",
            f"has a bucket number above {MAX_BUCKET}, which row ids cannot express",
            "leave this table to Hive's own compactor",
        )


def _frozen(found: Mapping[int, list[SourceFile]]) -> FilesByBucket:
    return {bucket: tuple(files) for bucket, files in found.items()}
