"""What one compaction of one partition reads and writes; with a JSON form.

A plan is complete: the Spark job that carries it out asks no metastore.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from enum import Enum

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.names import BaseName, parse_directory_name
from airflow_provider_acid.plan.exchange import OUTPUTS_DIRECTORY

FORMAT_VERSION = 2
"""Version of the JSON form of plans and results."""


class CompactionType(str, Enum):
    """Hive's words for the two kinds of compaction."""

    MINOR = "minor"
    MAJOR = "major"


class OutputKind(str, Enum):
    """What a directory of the result holds: rows (a base or a delta), or delete events (a delete delta)."""

    ROWS = "rows"
    DELETES = "deletes"


class FileFormat(str, Enum):
    """How a table's files are merged.

    Full-ACID files are merged row by row; the files of insert-only tables are taken over with their content unchanged:
    ORC and plain text in as few files as that allows, Parquet and ``APART`` file by file: Avro, RCFile, SequenceFile,
    and text whose lines may not be put behind those of another file, because of header lines, for example.
    """

    ACID_ORC = "acid_orc"
    ORC = "orc"
    PARQUET = "parquet"
    TEXT = "text"
    APART = "apart"

    @property
    def is_insert_only(self) -> bool:
        """Whether rows have no ids, so that files are taken over as they are."""
        return self is not FileFormat.ACID_ORC


class CopiedStripes(str, Enum):
    """Which stripes of full-ACID files are copied as bytes: those that lose no row, and are large enough; all that lose
    none; or none.
    """

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True)
class Column:
    """A column of the table, without partition columns.

    :param type: Hive's type text in lower case, e.g. ``array<struct<a:int,b:decimal(10,2)>>``.
    """

    name: str
    type: str


@dataclass(frozen=True)
class SyntheticIds:
    """The ids of rows in a file without ACID columns; their row numbers follow from the order of the files.

    :param write_id: 0 for files from before the table became transactional, else that of the directory.
    :param bucket_property: made of the number in the file's name and the directory's statement.
    """

    write_id: int
    bucket_property: int


@dataclass(frozen=True)
class SourceFile:
    """An input file.

    :param path: below the partition's location.
    :param size_bytes: its size when the plan was made.
    :param committed_bytes: how much of it a streaming writer committed, by its ``_flush_length`` file; what follows
        is no part of the table. None: all of it.
    :param synthetic: ids of its rows where it has no ACID columns. Row numbers begin at 0 and run on through
        consecutive files of equal ``synthetic``.
    """

    path: str
    size_bytes: int
    committed_bytes: int | None = None
    synthetic: SyntheticIds | None = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class BucketPlan:
    """One task's work: one output file and what goes into it (of an insert-only table: one or more).

    :param output: the directory the file belongs to.
    :param bucket: bucket (writer) number N of the output ``bucket_N``.
    :param rows: base file and insert delta files of this bucket, in the order in which their keys ascend; empty
        where delete events are merged.
    :param deletes: delete delta files that may hold deletes of this bucket's rows; their events are routed by
        the bucket inside the row, so a file may be listed for several buckets. With ``rows`` they are applied,
        without they are merged into one file of delete events.
    """

    output: OutputKind
    bucket: int
    rows: tuple[SourceFile, ...]
    deletes: tuple[SourceFile, ...]

    @property
    def input_bytes(self) -> int:
        """Bytes of all files this bucket reads."""
        return sum(file.size_bytes for file in self.rows + self.deletes)


@dataclass(frozen=True)
class OutputDirectory:
    """A directory of the result.

    :param target: name it is published under, e.g. ``base_0000005_v0000012``.
    """

    kind: OutputKind
    target: str


@dataclass(frozen=True)
class OrcOptions:
    """How the output is written; taken from the table's ``orc.*`` properties, ORC's defaults elsewhere.

    :param compression: ``none``, ``zlib``, ``snappy``, ``lz4`` or ``zstd``; never anything but the table's own.
    :param stripe_copy: which stripes are copied.
    :param small_stripe_share: of ``stripe_bytes``; smaller stripes that follow each other are rewritten together.
    :param slice_bytes: about so many bytes of a bucket's stripes one task rewrites, a quarter of them at least where
        task slots would be idle else; 0 leaves all to the bucket's one.
    """

    compression: str = "zlib"
    compression_block_bytes: int = 262_144
    stripe_bytes: int = 67_108_864
    row_index_stride: int = 10_000
    bloom_filter_columns: tuple[str, ...] = ()
    stripe_copy: CopiedStripes = CopiedStripes.AUTO
    small_stripe_share: float = 1 / 32
    slice_bytes: int = 134_217_728

    @property
    def small_stripe_bytes(self) -> int:
        """Stripes below this size are rewritten together with their neighbours."""
        return int(self.small_stripe_share * self.stripe_bytes) if self.stripe_copy is CopiedStripes.AUTO else 0


@dataclass(frozen=True)
class CompactionPlan:
    """One partition's compaction.

    :param attempt: token of this attempt; unique, also part of the staging directory's and the pool's name.
    :param entity: table or partition.
    :param type: what will be done (a minor that is not possible has become a major here).
    :param reason: one sentence that says why, and why the type differs from the one asked for where it does.
    :param location: URI of the partition's (or unpartitioned table's) directory.
    :param staging: name of the staging directory inside ``location``; starts with ``_``.
    :param format: how the files are merged.
    :param outputs: the directories of the result: a major's base; a minor's delta, delete delta, or both.
    :param columns: the table's current columns, in order.
    :param high_water_mark: highest write id the compaction may merge.
    :param aborted_write_ids: write ids up to the high-water mark whose rows are dropped, ascending.
    :param directories: input directories (base and deltas), relative to ``location``. Original files lie in none.
    :param side_files: ``_flush_length`` files that ``committed_bytes`` of the inputs come from.
    :param bucketed: whether the table declares buckets (then every file's rows carry the file's number).
    """

    attempt: str
    entity: Entity
    type: CompactionType
    reason: str
    location: str
    staging: str
    format: FileFormat
    outputs: tuple[OutputDirectory, ...]
    columns: tuple[Column, ...]
    high_water_mark: int
    aborted_write_ids: tuple[int, ...]
    directories: tuple[str, ...]
    side_files: tuple[SourceFile, ...]
    bucketed: bool
    orc: OrcOptions
    buckets: tuple[BucketPlan, ...]

    def staged(self, kind: OutputKind) -> str:
        """Where a directory of the result is made, relative to ``location``; publishing renames it to its target."""
        return f"{self.staging}/{OUTPUTS_DIRECTORY}/{kind.value}"

    @property
    def targets(self) -> tuple[str, ...]:
        """Names that the result is published under."""
        return tuple(output.target for output in self.outputs)

    @property
    def is_for_hive_3(self) -> bool:
        """Whether Hive 3's readers are served: no name carries a compaction's transaction, which they cannot parse."""
        names = (parse_directory_name(target) for target in self.targets)
        return all(name is None or not name.visibility_txn_id for name in names)

    @property
    def makes_first_base(self) -> bool:
        """Whether a base appears where none was.

        Files outside of all ACID directories are no part of the table any more then.
        """
        has_base = any(isinstance(parse_directory_name(name), BaseName) for name in self.directories)
        return self.type is CompactionType.MAJOR and not has_base

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
        if len(self.outputs) != len(other.outputs):
            return False
        pairs = zip(self.outputs, other.outputs, strict=True)
        mine = replace(
            self,
            attempt=other.attempt,
            staging=other.staging,
            outputs=tuple(replace(mine, target=theirs.target) for mine, theirs in pairs),
            reason=other.reason,
            high_water_mark=other.high_water_mark,
        )
        return mine == other

    @property
    def digest(self) -> str:
        """SHA-256 of the plan's JSON document, in hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """The plan as a JSON document."""
        return fields.versioned_document(self, FORMAT_VERSION)

    @classmethod
    def from_json(cls, document: str | bytes) -> CompactionPlan:
        """Read a plan.

        :raises ConfigurationError: the document is not a plan of this version.
        """
        return fields.read_as(cls, fields.versioned(document, "compaction plan", FORMAT_VERSION))
