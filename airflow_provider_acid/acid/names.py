"""Names of ACID directories and files, and the bucket property of a row: text and integers to values and back.

Rules: Hive's ``AcidUtils``, ``AcidConstants``, ``AcidMetaDataFile`` and ``BucketCodec``. Readers are lenient as Hive's
are (unpadded numbers parse), printed names are always the ones Hive writes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from airflow_provider_acid.acid.json_fields import decoded
from airflow_provider_acid.exceptions import ConfigurationError, CorruptFileError, UnknownNameError

NO_STATEMENT = -1
"""Statement id of a directory whose name has none; Hive sorts it before statement 0."""

MINIMUM_WRITE_ID = -(2**63)
"""Write id of the base that Hive 3 makes of nothing but original files."""

MAX_BUCKET = 4095
"""Highest bucket (writer) number that the twelve bits of the bucket property hold."""

MAX_STATEMENT = 4095
"""Highest statement id that the twelve bits of the bucket property hold."""

ACID_VERSION_FILE = "_orc_acid_version"
"""Marker file in every base, delta and delete delta; Trino insists on it."""

ACID_VERSION_CONTENT = b"2"
"""All of :data:`ACID_VERSION_FILE`: one byte, no line end."""

METADATA_FILE = "_metadata_acid"
"""Marker file of a base that a compaction wrote (Hive 4: also of one that TRUNCATE or DROP PARTITION wrote)."""

COMPACTED = "compacted"
"""Data format in :data:`METADATA_FILE` of a compaction's base; Hive 3 and Trino know no other."""

DATA_FORMATS = frozenset({COMPACTED, "truncated", "dropped"})
"""Every data format that Hive 4 writes into :data:`METADATA_FILE`."""

METADATA_CONTENT = b'{"thisFileVersion":"0","dataFormat":"compacted"}'
"""All of :data:`METADATA_FILE` in a base that a compaction wrote."""

_kept = lru_cache(maxsize=4096)
"""For what a name means: kept for the names seen last, because a table's partitions have the same."""

_LONG_MAX = 2**63 - 1
# Python refuses to read numbers of thousands of digits, which some storages take in a name.
_NUMBER = "([0-9]{1,100})"
_BASE = re.compile(rf"base_(-9223372036854775808|[0-9]{{1,100}})(?:_v{_NUMBER})?")
_DELTA = re.compile(rf"(delete_)?delta_{_NUMBER}_{_NUMBER}(?:_{_NUMBER})?(?:_v{_NUMBER})?")
_ACID_PREFIXES = ("base_", "delta_", "delete_delta_")
_HIDDEN_PREFIXES = ("_", ".")
_DATA_FILE = re.compile(rf"bucket_{_NUMBER}(?:_{_NUMBER})?")
_FLUSH_LENGTH = re.compile(r"bucket_[0-9]+_flush_length")
_ORIGINAL_FILE = re.compile(rf"{_NUMBER}_[0-9]+(?:_copy_{_NUMBER})?")


def _suffix(visibility_txn_id: int) -> str:
    return f"_v{visibility_txn_id:07d}" if visibility_txn_id else ""


@dataclass(frozen=True, order=True)
class BaseName:
    """``base_W[_vT]``: the state of a partition up to a write id.

    :param visibility_txn_id: the compaction's transaction; the directory exists for those who see it committed.
        0 where the name has none: an INSERT OVERWRITE, or any base of Hive 3.
    """

    write_id: int
    visibility_txn_id: int = 0

    def __str__(self) -> str:
        return f"base_{self.write_id:07d}{_suffix(self.visibility_txn_id)}"


@dataclass(frozen=True)
class DeltaName:
    """``[delete_]delta_A_B[_SSSS][_vT]``: inserted rows, or delete events, of a range of write ids.

    :param statement_id: statement of a transaction that had several; :data:`NO_STATEMENT` for compacted and
        streamed directories.
    :param visibility_txn_id: as in :class:`BaseName`.
    """

    min_write_id: int
    max_write_id: int
    statement_id: int = NO_STATEMENT
    visibility_txn_id: int = 0
    is_delete: bool = False

    def __str__(self) -> str:
        kind = "delete_delta" if self.is_delete else "delta"
        statement = "" if self.statement_id == NO_STATEMENT else f"_{self.statement_id:04d}"
        return f"{kind}_{self.min_write_id:07d}_{self.max_write_id:07d}{statement}{_suffix(self.visibility_txn_id)}"


@dataclass(frozen=True)
class DataFileName:
    """``bucket_N[_A]``: a data file with ACID columns; ``attempt`` is the task attempt that Hive 4 appends."""

    bucket: int
    attempt: int | None


@dataclass(frozen=True)
class OriginalFileName:
    """``N_A[_copy_C]``: a data file without ACID columns; ``copy`` is 0 where the name has no copy number."""

    bucket: int
    copy: int


@_kept
def parse_directory_name(name: str) -> BaseName | DeltaName | None:
    """The value behind a directory's name; None where it is no name of an ACID directory at all.

    :raises UnknownNameError: the name begins like one of an ACID directory but does not follow the rules.
    """
    if not is_acid_prefixed(name):
        return None
    parsed = _parse_base(name) or _parse_delta(name)
    if parsed is None:
        raise UnknownNameError(
            f"directory {name}",
            "begins like an ACID directory but follows none of the name rules of Hive 3 and 4",
            "find out what wrote it and move it out of the table",
        )
    return parsed


def _parse_base(name: str) -> BaseName | None:
    match = _BASE.fullmatch(name)
    if match is None:
        return None
    write_id, visibility = int(match[1]), int(match[2] or 0)
    return BaseName(write_id, visibility) if max(write_id, visibility) <= _LONG_MAX else None


def _parse_delta(name: str) -> DeltaName | None:
    match = _DELTA.fullmatch(name)
    if match is None:
        return None
    minimum, maximum, visibility = int(match[2]), int(match[3]), int(match[5] or 0)
    statement = NO_STATEMENT if match[4] is None else int(match[4])
    if minimum > maximum or max(maximum, visibility) > _LONG_MAX:
        return None
    return DeltaName(minimum, maximum, statement, visibility, is_delete=match[1] is not None)


@_kept
def parse_data_file_name(name: str) -> DataFileName | None:
    """The value behind ``bucket_N[_A]``; None for every other name."""
    match = _DATA_FILE.fullmatch(name)
    return DataFileName(int(match[1]), None if match[2] is None else int(match[2])) if match else None


@_kept
def parse_original_file_name(name: str) -> OriginalFileName | None:
    """The value behind ``N_A[_copy_C]``; None for every other name."""
    match = _ORIGINAL_FILE.fullmatch(name)
    return OriginalFileName(int(match[1]), int(match[2] or 0)) if match else None


@_kept
def is_flush_length(name: str) -> bool:
    """Whether this is the side file that says how much of a streamed bucket file is committed."""
    return _FLUSH_LENGTH.fullmatch(name) is not None


def is_acid_prefixed(name: str) -> bool:
    """Whether a directory's name begins like that of an ACID directory."""
    return name.startswith(_ACID_PREFIXES)


def is_hidden(name: str) -> bool:
    """Whether every reader ignores a file or directory of this name."""
    return name.startswith(_HIDDEN_PREFIXES)


def has_hidden_part(path: str) -> bool:
    """Whether a file or any directory above it, up to the listed one, is hidden."""
    return path.startswith(_HIDDEN_PREFIXES) or "/_" in path or "/." in path


def bucket_file_name(bucket: int) -> str:
    """The name of a compaction's output file; without an attempt, which Hive 3 cannot read."""
    return f"bucket_{bucket:05d}"


def marker_files(directory_name: str) -> dict[str, bytes]:
    """The files that tell readers what a compaction's directory is: their names and contents.

    :param directory_name: the name it is published under.
    """
    markers = {ACID_VERSION_FILE: ACID_VERSION_CONTENT}
    if isinstance(parse_directory_name(directory_name), BaseName):
        markers[METADATA_FILE] = METADATA_CONTENT
    return markers


def parse_data_format(content: bytes, path: str) -> str:
    """The data format that a :data:`METADATA_FILE` names.

    :param path: the file's path, for the error.
    :raises UnknownNameError: the content is not one that Hive 3 or 4 writes; Hive's readers fail on it, too.
    """
    try:
        written = decoded(content, path)
    except ConfigurationError:
        written = {}
    value = written.get("dataFormat") if written.get("thisFileVersion") == "0" else None
    if not isinstance(value, str) or value not in DATA_FORMATS:
        raise UnknownNameError(
            path,
            f"holds {content[:100]!r}, which no version of Hive writes",
            "find out what wrote it; it decides whether the base is a compaction's",
        )
    return value


def parse_flush_length(content: bytes, path: str) -> int:
    """The committed length of a streamed file, in bytes: the last number that its side file holds.

    :param path: the side file's path, for the error.
    :raises CorruptFileError: there is no whole number in it (``OrcAcidUtils.getLastFlushLength``).
    """
    length = int.from_bytes(content[-8:], "big", signed=True)
    if not content or len(content) % 8 or length < 0:
        raise CorruptFileError(
            path,
            f"holds {len(content)} bytes, not the lengths a streaming writer writes",
            "ask whoever streams into this table; until then nobody knows how much of the file is committed",
        )
    return length


@dataclass(frozen=True)
class BucketProperty:
    """The ``bucket`` column of a row's id, a 32 bit number.

    :param version: 0, where the whole number is the bucket (rows older than Hive 3), or 1.
    :param writer_id: bucket of a bucketed table, else number of the writer; also the N of the file's name.
    :param statement_id: statement of the transaction that wrote the row.
    """

    version: int
    writer_id: int
    statement_id: int

    @classmethod
    def decode(cls, value: int) -> BucketProperty:
        """Take a bucket property apart.

        :raises UnknownNameError: a codec version that Hive does not define, or bits set that it reserves.
        """
        version = (value & 0xFFFFFFFF) >> 29
        decoded = cls(0, value, 0) if version == 0 else cls(1, (value >> 16) & 0xFFF, value & 0xFFF)
        if version > 1 or decoded._packed() != value:
            raise UnknownNameError(
                f"bucket property {value}",
                "is of no codec version that Hive 3 or 4 writes",
                "check the file for damage; it is not compacted",
            )
        return decoded

    def encode(self) -> int:
        """The 32 bit number.

        :raises UnknownNameError: a part is too large for its bits, or the version is unknown.
        """
        fits = 0 <= self.writer_id <= MAX_BUCKET and 0 <= self.statement_id <= MAX_STATEMENT
        if self.version == 0:
            fits = 0 <= self.writer_id < 2**29 and self.statement_id == 0
        if self.version not in (0, 1) or not fits:
            raise UnknownNameError(
                str(self), "has no encoding as a bucket property", f"use writers up to {MAX_BUCKET} and version 0 or 1"
            )
        return self._packed()

    def _packed(self) -> int:
        if self.version == 0:
            return self.writer_id
        return 1 << 29 | self.writer_id << 16 | self.statement_id
