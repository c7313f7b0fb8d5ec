"""What one compaction of one partition reads and writes, and what came of it; with a JSON form.

A plan is complete: the Spark job that carries it out asks no metastore. A result is a report, not a proof: the
operator checks it against the plan and the storage before it publishes anything.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from enum import Enum

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.json_fields import JsonObject
from airflow_provider_acid.exceptions import ConfigurationError

FORMAT_VERSION = 1

OUTPUT_DIRECTORY = "output"
"""Name of the finished directory inside a staging directory; publishing renames it to the plan's target."""


class CompactionType(str, Enum):
    """Hive's words for the two kinds of compaction."""

    MINOR = "minor"
    MAJOR = "major"


@dataclass(frozen=True)
class Column:
    """A column of the table, without partition columns.

    :param type: Hive's type text in lower case, e.g. ``array<struct<a:int,b:decimal(10,2)>>``.
    """

    name: str
    type: str

    @classmethod
    def from_json(cls, data: JsonObject) -> Column:
        """Decode one column."""
        return cls(fields.text(data, "name"), fields.text(data, "type"))


@dataclass(frozen=True)
class SourceFile:
    """An input file: its path below the partition's location, and its size when the plan was made."""

    path: str
    size_bytes: int

    @classmethod
    def from_json(cls, data: JsonObject) -> SourceFile:
        """Decode one file."""
        return cls(fields.text(data, "path"), fields.integer(data, "size_bytes"))


@dataclass(frozen=True)
class BucketPlan:
    """One output file and what goes into it.

    :param bucket: bucket (writer) number N of the output ``bucket_N``.
    :param rows: base file and insert delta files of this bucket, in the order in which their keys ascend.
    :param deletes: delete delta files that may hold deletes of this bucket's rows; their events are routed by
        the bucket inside the row, so a file may be listed for several buckets.
    """

    bucket: int
    rows: tuple[SourceFile, ...]
    deletes: tuple[SourceFile, ...]

    @property
    def input_bytes(self) -> int:
        """Bytes of all files this bucket reads."""
        return sum(file.size_bytes for file in self.rows + self.deletes)

    @classmethod
    def from_json(cls, data: JsonObject) -> BucketPlan:
        """Decode one bucket."""
        return cls(
            fields.integer(data, "bucket"),
            fields.children(data, "rows", SourceFile.from_json),
            fields.children(data, "deletes", SourceFile.from_json),
        )


@dataclass(frozen=True)
class OrcOptions:
    """How the output is written; taken from the table's ``orc.*`` properties, ORC's defaults elsewhere.

    :param compression: ``none``, ``zlib``, ``snappy``, ``lz4`` or ``zstd``; never anything but the table's own.
    """

    compression: str = "zlib"
    compression_block_bytes: int = 262_144
    stripe_bytes: int = 67_108_864
    row_index_stride: int = 10_000
    bloom_filter_columns: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: JsonObject) -> OrcOptions:
        """Decode the options."""
        return cls(
            fields.text(data, "compression"),
            fields.integer(data, "compression_block_bytes"),
            fields.integer(data, "stripe_bytes"),
            fields.integer(data, "row_index_stride"),
            fields.texts(data, "bloom_filter_columns"),
        )


@dataclass(frozen=True)
class CompactionPlan:
    """One partition's compaction.

    :param attempt: token of this attempt; unique, also part of the staging directory's and the pool's name.
    :param entity: table or partition.
    :param type: what will be done (a minor that is not possible has become a major here).
    :param reason: one sentence that says why, and why the type differs from the one asked for where it does.
    :param location: URI of the partition's (or unpartitioned table's) directory.
    :param staging: name of the staging directory inside ``location``; starts with ``_``.
    :param target: name the finished directory is published under, e.g. ``base_0000005_v0000012``.
    :param columns: the table's current columns, in order.
    :param high_water_mark: highest write id the compaction may merge.
    :param aborted_write_ids: write ids up to the high-water mark whose rows are dropped, ascending.
    :param directories: input directories (base and deltas), relative to ``location``.
    :param bucketed: whether the table declares buckets (then every file's rows carry the file's number).
    """

    attempt: str
    entity: Entity
    type: CompactionType
    reason: str
    location: str
    staging: str
    target: str
    columns: tuple[Column, ...]
    high_water_mark: int
    aborted_write_ids: tuple[int, ...]
    directories: tuple[str, ...]
    bucketed: bool
    orc: OrcOptions
    buckets: tuple[BucketPlan, ...]

    @property
    def input_files(self) -> tuple[SourceFile, ...]:
        """Every input file once, by path."""
        files = {file.path: file for bucket in self.buckets for file in bucket.rows + bucket.deletes}
        return tuple(files[path] for path in sorted(files))

    @property
    def input_bytes(self) -> int:
        """Bytes of all input files, each counted once."""
        return sum(file.size_bytes for file in self.input_files)

    def merges_the_same_as(self, other: CompactionPlan) -> bool:
        """Whether an output made by ``other`` holds exactly the rows this plan asks for."""
        mine = replace(
            self,
            attempt=other.attempt,
            staging=other.staging,
            target=other.target,
            reason=other.reason,
            high_water_mark=other.high_water_mark,
        )
        return mine == other

    def to_json(self) -> str:
        """The plan as a JSON document."""
        return json.dumps({"format_version": FORMAT_VERSION, **asdict(self)}, sort_keys=True)

    @classmethod
    def from_json(cls, document: str) -> CompactionPlan:
        """Read a plan.

        :raises ConfigurationError: the document is not a plan of this version.
        """
        data = _versioned(document, "compaction plan")
        return cls(
            attempt=fields.text(data, "attempt"),
            entity=Entity.from_json(fields.child(data, "entity")),
            type=_compaction_type(data),
            reason=fields.text(data, "reason"),
            location=fields.text(data, "location"),
            staging=fields.text(data, "staging"),
            target=fields.text(data, "target"),
            columns=fields.children(data, "columns", Column.from_json),
            high_water_mark=fields.integer(data, "high_water_mark"),
            aborted_write_ids=fields.integers(data, "aborted_write_ids"),
            directories=fields.texts(data, "directories"),
            bucketed=fields.boolean(data, "bucketed"),
            orc=OrcOptions.from_json(fields.child(data, "orc")),
            buckets=fields.children(data, "buckets", BucketPlan.from_json),
        )


@dataclass(frozen=True)
class OutputFile:
    """A file of the result, counted once while writing and once more when it was read back.

    A bucket of which no row is left has no file; it is reported all the same, with ``rows_out`` 0.

    :param rows_in: rows of the input files of this bucket, before anything was dropped.
    :param rows_aborted: rows dropped because their write id is aborted.
    :param rows_deleted: rows dropped because a valid delete event names them.
    :param rows_out: rows in the file; ``rows_in - rows_aborted - rows_deleted``.
    """

    bucket: int
    name: str
    size_bytes: int
    stripes: int
    rows_in: int
    rows_aborted: int
    rows_deleted: int
    rows_out: int

    @classmethod
    def from_json(cls, data: JsonObject) -> OutputFile:
        """Decode one file."""
        counts = ("size_bytes", "stripes", "rows_in", "rows_aborted", "rows_deleted", "rows_out")
        return cls(
            fields.integer(data, "bucket"),
            fields.text(data, "name"),
            *(fields.integer(data, name) for name in counts),
        )


@dataclass(frozen=True)
class CompactionResult:
    """What the Spark job reports about one plan.

    :param attempt: the plan's token.
    :param error: None when the output directory is complete; else the message of what went wrong.
    :param files: what became of every bucket of the plan.
    :param seconds: wall time from the first task to the last verified file.
    """

    attempt: str
    entity: Entity
    error: str | None
    files: tuple[OutputFile, ...]
    seconds: float

    def to_json(self) -> str:
        """The result as a JSON document."""
        return json.dumps({"format_version": FORMAT_VERSION, **asdict(self)}, sort_keys=True)

    @classmethod
    def from_json(cls, document: str) -> CompactionResult:
        """Read a result.

        :raises ConfigurationError: the document is not a result of this version.
        """
        data = _versioned(document, "compaction result")
        return cls(
            attempt=fields.text(data, "attempt"),
            entity=Entity.from_json(fields.child(data, "entity")),
            error=fields.optional_text(data, "error"),
            files=fields.children(data, "files", OutputFile.from_json),
            seconds=fields.number(data, "seconds"),
        )


def _compaction_type(data: JsonObject) -> CompactionType:
    word = fields.text(data, "type")
    if word not in {kind.value for kind in CompactionType}:
        raise ConfigurationError(
            "JSON field 'type'",
            f"{word!r} is no type of compaction",
            "write and read plans and results with the same version of airflow-provider-acid",
        )
    return CompactionType(word)


def _versioned(document: str, what: str) -> JsonObject:
    try:
        decoded = json.loads(document)
    except ValueError as error:
        raise ConfigurationError(what, f"is not JSON ({error})", "remove the run directory and start again") from error
    data = fields.as_object(decoded, what)
    if data.get("format_version") != FORMAT_VERSION:
        raise ConfigurationError(
            what,
            f"has format version {data.get('format_version')!r}, this package reads {FORMAT_VERSION}",
            "run operator and Spark job from the same release of airflow-provider-acid",
        )
    return data
