"""Which tables and partitions this package compacts; every other is refused by name, with a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import urlsplit

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.facts import EntityFacts, StorageFormat, find_property, storage_format
from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.merge.orc.schema import parse_hive_type
from airflow_provider_acid.metastore.values import ColumnInfo, DatabaseInfo, PartitionInfo, TableInfo
from airflow_provider_acid.plan.plan import FileFormat

ORC_INPUT_FORMAT = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"

_INSERT_ONLY_FORMATS = {
    ORC_INPUT_FORMAT: FileFormat.ORC,
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat": FileFormat.PARQUET,
    "org.apache.hadoop.mapred.TextInputFormat": FileFormat.TEXT,
    "org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat": FileFormat.APART,
    "org.apache.hadoop.hive.ql.io.RCFileInputFormat": FileFormat.APART,
    "org.apache.hadoop.mapred.SequenceFileInputFormat": FileFormat.APART,
}

_OTHER_FORMATS = (
    ("json", "JSON"),
    ("iceberg", "Iceberg"),
    ("hbase", "HBase"),
)
"""Parts of the names of input formats and SerDes, and what users call the format."""

_SERDES_OF_LINES = frozenset(
    (
        "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
        "org.apache.hadoop.hive.serde2.OpenCSVSerde",
        "org.apache.hadoop.hive.serde2.RegexSerDe",
        "org.apache.hadoop.hive.serde2.MultiDelimitSerDe",
        "org.apache.hadoop.hive.contrib.serde2.MultiDelimitSerDe",
        "org.apache.hadoop.hive.serde2.JsonSerDe",
        "org.apache.hive.hcatalog.data.JsonSerDe",
        "org.openx.data.jsonserde.JsonSerDe",
    )
)
"""SerDes that see one line at a time, so that it does not matter which file a line lies in."""

_ENCODINGS_WITH_LINE_ENDS = re.compile(r"utf-?8|us-ascii|ascii|iso-?8859-?[0-9]+|windows-125[0-8]", re.IGNORECASE)
"""Encodings in which a byte 10 is a line end and nothing else."""


def table_refusal(table: TableInfo, database: DatabaseInfo) -> UnsupportedTableError | None:
    """Why no partition of this table is compacted; None where nothing speaks against it.

    The conditions are those of Hive's Initiator and Worker (sorted tables, replication) plus what this
    release does not do yet.
    """
    for applies, reason, remedy in _table_conditions(table, database):
        if applies:
            return UnsupportedTableError(f"table {table.database}.{table.name}", reason, remedy)
    return None


def _table_conditions(table: TableInfo, database: DatabaseInfo) -> Iterator[tuple[bool, str, str]]:
    yield table.is_external, "is an external table", "only managed ACID tables have deltas to compact"
    yield (
        not table.is_transactional,
        "is not an ACID table (property transactional is not true)",
        "name tables created with transactional=true",
    )
    yield (
        bool(find_property(database.parameters, "repl.source.for")),
        "its database is a replication source (repl.source.for); deleted files would have to go to the change manager",
        "leave this database to Hive's own compactor",
    )
    pending = find_property(table.parameters, "hive.repl.first.inc.pending") or find_property(
        database.parameters, "hive.repl.first.inc.pending"
    )
    yield (
        (pending or "").lower() == "true",
        "waits for its first incremental replication (hive.repl.first.inc.pending)",
        "compact it when the replication load has finished",
    )
    storage = storage_format(table, None)
    yield _known_format(table, storage) is None, *_format_refusal(table, storage)
    # Whatever a partition's own properties say, Hive 3.1 goes by its table's (Utilities.getHeaderCount).
    yield not table.is_insert_only and _skips_lines(storage), *_SKIPPED_ROWS
    yield (
        table.is_insert_only and table.stored_as_directories,
        *_LIST_BUCKETING,
    )
    unknown = None if table.is_insert_only else next(filter(None, map(_unknown_type, table.columns)), None)
    yield unknown is not None, *(unknown or ("", ""))
    yield (
        bool(table.sort_columns),
        "is sorted (SORTED BY), and a merge by row id would break the order",
        "recreate the table without SORTED BY to have it compacted",
    )


_SKIPPED_ROWS = (
    "has skip.header.line.count or skip.footer.line.count, by which Hive 3.1 leaves out the first or last rows of each "
    "file, so that a merge of files would show other rows",
    "remove the property: ORC files have no such lines, and all rows are read without it",
)

_LIST_BUCKETING = (
    "is skewed and stored as directories (list bucketing), which a merge would flatten",
    "recreate it without STORED AS DIRECTORIES to have it compacted",
)


@lru_cache(maxsize=4096)
def _unknown_type(column: ColumnInfo) -> tuple[str, str] | None:
    """Why rows with such a column are not merged, and the remedy; None where they are."""
    try:
        parse_hive_type(column.name, column.type)
    except UnsupportedTableError as error:
        return f"has the {error.subject}: {error.reason}", error.remedy
    return None


def _known_format(table: TableInfo, storage: StorageFormat) -> FileFormat | None:
    """How files that are stored so are merged; None where they are not compacted."""
    if not table.is_insert_only:
        return FileFormat.ACID_ORC if storage.input_format == ORC_INPUT_FORMAT else None
    format = _INSERT_ONLY_FORMATS.get(storage.input_format)
    if format is FileFormat.ORC and _skips_lines(storage):
        # Hive leaves out the first rows of every file, whatever the format (HiveContextAwareRecordReader.doNext).
        return FileFormat.APART
    if format is not FileFormat.TEXT:
        return format
    if storage.serde not in _SERDES_OF_LINES:
        return None
    return FileFormat.APART if _lines_belong_to_files(storage) else FileFormat.TEXT


def _format_refusal(table: TableInfo, storage: StorageFormat) -> tuple[str, str]:
    if not table.is_insert_only:
        return (
            f"is stored as {storage.input_format}, not ORC",
            "full ACID tables are stored as ORC; check the table's definition",
        )
    classes = f"{storage.input_format} {storage.serde}"
    name = next((name for part, name in _OTHER_FORMATS if part in classes.lower()), "another format")
    return (
        f"is an insert-only table stored as {name} ({classes.strip()}), which is not compacted",
        "insert-only tables are compacted in Hive's own formats; use Hive's own compactor for it",
    )


def file_format(table: TableInfo, partition: PartitionInfo | None) -> FileFormat:
    """How the files of a partition, or of an unpartitioned table, are merged; a partition is judged by its own format.

    :raises UnsupportedTableError: its format is not compacted.
    """
    storage = storage_format(table, partition)
    format = _known_format(table, storage)
    if format is None:
        name = f"table {table.database}.{table.name}"
        subject = f"partition {partition.name} of {name}" if partition else name
        raise UnsupportedTableError(subject, *_format_refusal(table, storage))
    return format


def _lines_belong_to_files(storage: StorageFormat) -> bool:
    """Whether text means something else behind the text of another file."""
    delimiters = storage.values("line.delim")
    return (
        _skips_lines(storage)
        or any(delimiter not in ("\n", "10") for delimiter in delimiters)
        or bool(storage.values("textinputformat.record.delimiter"))
        or not all(map(_ENCODINGS_WITH_LINE_ENDS.fullmatch, storage.values("serialization.encoding")))
    )


def _skips_lines(storage: StorageFormat) -> bool:
    counts = storage.values("skip.header.line.count") + storage.values("skip.footer.line.count")
    return any(count.strip() != "0" for count in counts)


def check_entity(facts: EntityFacts) -> None:
    """Refuse what cannot or must not be compacted.

    :raises UnsupportedTableError: naming the table or partition, the reason and the remedy.
    """
    refusal = table_refusal(facts.table, facts.database)
    if refusal is not None:
        raise refusal
    file_format(facts.table, facts.partition)
    check_partition(facts.entity, facts.table, facts.partition)


def check_partition(entity: Entity, table: TableInfo, partition: PartitionInfo | None) -> None:
    """Refuse a partition, or an unpartitioned table, for what neither its table nor :func:`file_format` is refused for.

    :raises UnsupportedTableError: as for :func:`check_entity`.
    """
    own = {} if partition is None else partition.parameters
    kept = find_property(own, "no_cleanup") or find_property(table.parameters, "no_cleanup")
    if (kept or "").lower() == "true":
        raise UnsupportedTableError(
            str(entity),
            "has no_cleanup=true, so that the merged directories could never be deleted",
            "remove the property no_cleanup from table and partition",
        )
    if partition is None:
        return
    if table.is_insert_only and partition.stored_as_directories:
        raise UnsupportedTableError(str(entity), *_LIST_BUCKETING)
    if partition.sort_columns:
        raise UnsupportedTableError(
            str(entity), "the partition is sorted (SORTED BY)", "leave it, or rewrite it without SORTED BY"
        )
    if partition.location.startswith(f"{table.location}/") and ".." not in partition.location:
        return
    root, place = urlsplit(table.location), urlsplit(partition.location)
    if (root.scheme, root.netloc) != (place.scheme, place.netloc) or ".." in place.path.split("/"):
        raise UnsupportedTableError(
            str(entity),
            f"lies at {partition.location}, on another store than its table or by way of '..'",
            "move the partition below its table",
        )
