"""The plan of a major compaction: which files go into which output, or why the partition is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from airflow_provider_acid.acid.directory import AcidDirectory, BaseDirectory, DeltaDirectory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.listing import FileEntry
from airflow_provider_acid.acid.names import (
    MAX_BUCKET,
    NO_STATEMENT,
    BaseName,
    DeltaName,
    is_hidden,
    parse_data_file_name,
    parse_directory_name,
)
from airflow_provider_acid.acid.plan import (
    BucketPlan,
    Column,
    CompactionPlan,
    CompactionType,
    OrcOptions,
    SourceFile,
)
from airflow_provider_acid.acid.write_ids import ValidWriteIdList, WriteIdView
from airflow_provider_acid.exceptions import (
    ConfigurationError,
    RefusedError,
    UnknownNameError,
    UnsupportedTableError,
)

_LATER = "which is left to a later release"
_COMPRESSIONS = ("none", "zlib", "snappy", "lz4", "zstd")


def worth_compacting(directory: AcidDirectory, *, single_delta: bool = False) -> str | None:
    """Why a major compaction would change nothing; None where it is worth it.

    The rule of Hive 4's Worker: original files, or more than one directory to merge.

    :param single_delta: follow Hive 3 instead, which also rewrites a single delta into a base.
    """
    count = len(directory.current)
    if directory.originals or count > 1 or (single_delta and directory.deltas):
        return None
    what = f"only {directory.current[0].path}" if count else "no data"
    return f"there is {what}, so a major compaction has nothing to merge"


def major_plan(
    *,
    attempt: str,
    entity: Entity,
    location: str,
    directory: AcidDirectory,
    write_ids: ValidWriteIdList,
    columns: Sequence[Column],
    bucketed: bool,
    table_parameters: Mapping[str, str],
    staging: str,
    visibility_txn_id: int,
    reason: str,
) -> CompactionPlan:
    """Plan a major compaction of a full-ACID partition.

    :param directory: the partition as ``write_ids``, a compactor's list, sees it.
    :param staging: name of the staging directory; hidden, hence starting with ``_``.
    :param visibility_txn_id: the compaction's transaction on Hive 4; 0 on Hive 3.
    :raises UnsupportedTableError: the partition holds something that this release does not compact.
    :raises UnknownNameError: the partition holds a file that no rule explains.
    :raises RefusedError: there is nothing to merge.
    :raises ConfigurationError: the write ids are not a compactor's, or the staging name is not hidden.
    """
    _check_arguments(write_ids, staging)
    refuse_unsupported(entity, directory)
    nothing = worth_compacting(directory, single_delta=True)
    if nothing:
        raise RefusedError(f"table {entity}", nothing, "nothing needs to be done")
    return CompactionPlan(
        attempt=attempt,
        entity=entity,
        type=CompactionType.MAJOR,
        reason=reason,
        location=location,
        staging=staging,
        target=str(BaseName(_highest_write_id(directory), visibility_txn_id)),
        columns=tuple(columns),
        high_water_mark=write_ids.high_water_mark,
        aborted_write_ids=write_ids.aborted,
        directories=tuple(part.path for part in directory.current),
        bucketed=bucketed,
        orc=orc_options(table_parameters),
        buckets=_bucket_plans(entity, directory, bucketed),
    )


def refuse_unsupported(entity: Entity, directory: AcidDirectory) -> None:
    """Refuse a partition that holds something that this release does not compact; errors as :func:`major_plan`."""
    _refuse_unsupported_files(entity, directory)
    _refuse_half_published(entity, directory)
    _refuse_overlaps(entity, directory)


def orc_options(table_parameters: Mapping[str, str]) -> OrcOptions:
    """How the table wants its ORC files written.

    :raises UnsupportedTableError: a compression or a number that cannot be honoured.
    """
    defaults = OrcOptions()
    compression = table_parameters.get("orc.compress", defaults.compression).strip().lower()
    if compression not in _COMPRESSIONS:
        raise UnsupportedTableError(
            f"table property orc.compress={table_parameters['orc.compress']}",
            f"names a compression that is not one of {', '.join(_COMPRESSIONS)}",
            "set the table property to one of them",
        )
    indexed = table_parameters.get("orc.create.index", "true").strip().lower() != "false"
    stride = _bytes_or_rows(table_parameters, "orc.row.index.stride", defaults.row_index_stride, minimum=0)
    return OrcOptions(
        compression=compression,
        compression_block_bytes=_bytes_or_rows(table_parameters, "orc.compress.size", defaults.compression_block_bytes),
        stripe_bytes=_bytes_or_rows(table_parameters, "orc.stripe.size", defaults.stripe_bytes),
        row_index_stride=stride if indexed else 0,
        bloom_filter_columns=tuple(
            name.strip() for name in table_parameters.get("orc.bloom.filter.columns", "").split(",") if name.strip()
        ),
    )


def _bytes_or_rows(table_parameters: Mapping[str, str], name: str, default: int, minimum: int = 1) -> int:
    text = table_parameters.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        value = minimum - 1
    if value < minimum:
        raise UnsupportedTableError(
            f"table property {name}={text!r}", f"is no whole number from {minimum} on", "correct it or remove it"
        )
    return value


def _check_arguments(write_ids: ValidWriteIdList, staging: str) -> None:
    if write_ids.view is not WriteIdView.COMPACTOR:
        raise ConfigurationError("a plan", f"was given the list of a {write_ids.view.value}", "use compactor_list")
    if not is_hidden(staging) or "/" in staging:
        raise ConfigurationError(f"staging name {staging!r}", "is visible to readers", "let it start with '_'")


def _highest_write_id(directory: AcidDirectory) -> int:
    # Not the high-water mark: a repeated run over unchanged input must give the same name.
    known = [delta.name.max_write_id for delta in directory.deltas]
    return max([*known, *([directory.base.write_id] if directory.base else [])])


def _refuse_unsupported_files(entity: Entity, directory: AcidDirectory) -> None:
    kinds: tuple[tuple[Iterable[str], str], ...] = (
        (
            (file.path for file in directory.originals),
            "is an original file from before the table became transactional, " + _LATER,
        ),
        (directory.raw_files, "has no ACID columns (LOAD DATA left it so), " + _LATER),
        (directory.flush_length_files, "belongs to a streaming writer that did not close its files, " + _LATER),
        (directory.nested_directories, "is a directory inside an ACID directory, " + _LATER),
    )
    for paths, reason in kinds:
        for path in paths:
            raise UnsupportedTableError(
                f"{path} of table {entity}", reason, "let Hive's own compactor handle this partition until then"
            )
    for path in directory.unknown_files:
        raise UnknownNameError(
            f"{path} of table {entity}",
            "follows none of the name rules of Hive, Trino and the streaming writers",
            "find out what wrote it and move it out of the table",
        )


def _refuse_overlaps(entity: Entity, directory: AcidDirectory) -> None:
    remedy = "let Hive's own compactor handle this partition, or find out what wrote the directories"
    covered = directory.base.write_id if directory.base else 0
    for delta in directory.deltas:
        if directory.base and delta.name.min_write_id <= covered:
            raise UnsupportedTableError(
                f"{delta.path} of table {entity}", f"reaches below the base {directory.base.path}", remedy
            )
    for one, other in pairwise(directory.deltas):
        if _range(one.name) == _range(other.name):
            _refuse_twins(entity, one, other)
        elif other.name.min_write_id <= one.name.max_write_id:
            raise UnsupportedTableError(
                f"{other.path} of table {entity}", f"overlaps {one.path}, and rows of both would be read", remedy
            )


def _refuse_twins(entity: Entity, one: DeltaDirectory, other: DeltaDirectory) -> None:
    same_statement = one.name.statement_id == other.name.statement_id
    if same_statement and one.name.is_delete == other.name.is_delete:
        raise UnsupportedTableError(
            f"{one.path} and {other.path} of table {entity}",
            "hold the same range of write ids twice, so that Hive reads its rows twice (HIVE-29210)",
            "find out which of the two compactions is to stay and move the other directory out of the table",
        )


def _refuse_half_published(entity: Entity, directory: AcidDirectory) -> None:
    """A minor compaction publishes two directories; between the two, one kind hides sources of the other."""
    names = {delta.name for delta in directory.deltas}
    kinds_by_range = {(_range(name), name.is_delete) for name in names}
    for delta in directory.deltas:
        if delta.name.statement_id != NO_STATEMENT or (_range(delta.name), not delta.name.is_delete) in kinds_by_range:
            continue
        for path in directory.obsolete:
            hidden = parse_directory_name(path) if "/" not in path else None
            if isinstance(hidden, DeltaName) and _is_hidden_by(hidden, delta.name):
                raise UnsupportedTableError(
                    f"{delta.path} of table {entity}",
                    f"hides {path}, which holds the other kind of data: a minor compaction was published by half",
                    "let Hive repeat the minor compaction of this partition, or restore the other directory",
                )


def _is_hidden_by(hidden: DeltaName, delta: DeltaName) -> bool:
    inside = delta.min_write_id <= hidden.min_write_id and hidden.max_write_id <= delta.max_write_id
    return inside and hidden.is_delete != delta.is_delete


def _range(name: DeltaName) -> tuple[int, int]:
    return name.min_write_id, name.max_write_id


def _bucket_plans(entity: Entity, directory: AcidDirectory, bucketed: bool) -> tuple[BucketPlan, ...]:
    base = (directory.base,) if directory.base else ()
    rows = _files_by_bucket(entity, (*base, *_in_key_order(directory.insert_deltas)))
    deletes = _files_by_bucket(entity, _in_key_order(directory.delete_deltas))
    # Hive 3 wrote deletes of unbucketed tables into files of other numbers than their rows'.
    all_deletes = tuple(sorted((file for files in deletes.values() for file in files), key=lambda file: file.path))
    # Delete files of a bucket that has no rows (any more) are inputs too: they are replaced with all others.
    buckets = rows.keys() | deletes.keys() if bucketed or not rows else rows.keys()
    return tuple(
        BucketPlan(bucket, tuple(rows.get(bucket, ())), tuple(deletes.get(bucket, ())) if bucketed else all_deletes)
        for bucket in sorted(buckets)
    )


def _in_key_order(deltas: Iterable[DeltaDirectory]) -> list[DeltaDirectory]:
    return sorted(deltas, key=lambda delta: (delta.name.min_write_id, delta.name.statement_id))


def _files_by_bucket(
    entity: Entity, directories: Iterable[BaseDirectory | DeltaDirectory]
) -> dict[int, list[SourceFile]]:
    found: dict[int, list[SourceFile]] = {}
    for directory in directories:
        for bucket, file in _data_files(entity, directory):
            # A file of 0 bytes is no ORC file and holds no rows; Hive skips it, too.
            if file.size_bytes:
                found.setdefault(bucket, []).append(SourceFile(file.path, file.size_bytes))
    return found


def _data_files(entity: Entity, directory: BaseDirectory | DeltaDirectory) -> list[tuple[int, FileEntry]]:
    by_bucket: dict[int, FileEntry] = {}
    for file in directory.files:
        name = parse_data_file_name(file.path.rpartition("/")[2])
        if name is None:
            continue
        if name.bucket > MAX_BUCKET:
            raise UnsupportedTableError(
                f"{file.path} of table {entity}",
                f"has a bucket number above {MAX_BUCKET}, which row ids cannot express",
                "leave this table to Hive's own compactor",
            )
        if name.bucket in by_bucket:
            raise UnsupportedTableError(
                f"{file.path} of table {entity}",
                f"has the same bucket number as {by_bucket[name.bucket].path}",
                "find out which of the two task attempts was committed and move the other file out of the table",
            )
        by_bucket[name.bucket] = file
    return sorted(by_bucket.items())
