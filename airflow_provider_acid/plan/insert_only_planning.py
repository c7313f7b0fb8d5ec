"""What an insert-only (micromanaged) partition adds to planning: which files go where, and what is refused.

Its directories hold plain files, whose rows have no ids: a directory is valid as a whole or not at all. Rules: Hive's
``MmMajorQueryCompactor``, ``MmMinorQueryCompactor`` and ``HiveInputFormat.processForWriteIds``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from airflow_provider_acid.acid.directory import AcidDirectory, BaseDirectory, DeltaDirectory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.listing import FileEntry
from airflow_provider_acid.acid.names import is_acid_prefixed
from airflow_provider_acid.exceptions import UnknownNameError, UnsupportedTableError
from airflow_provider_acid.plan.minor import Deltas, delta_with_aborted_rows, no_insert_only_minor, range_obstacle
from airflow_provider_acid.plan.partition import CompactionPolicy, PartitionState
from airflow_provider_acid.plan.plan import BucketPlan, CompactionType, OutputKind, SourceFile
from airflow_provider_acid.plan.refusals import refuse_overlaps

_NUMBERED = re.compile(r"([0-9]{1,18})_")

_FOREIGN = "find out what wrote it and move it out of the table"


def refuse_insert_only(entity: Entity, directory: AcidDirectory) -> None:
    """Refuse an insert-only partition that cannot be compacted, whichever way.

    :raises UnsupportedTableError: delete deltas, ACID directories inside others, directories that overlap, or one
        that mixes the rows of aborted and of other transactions.
    """
    for delta in directory.delete_deltas:
        raise UnsupportedTableError(
            f"{delta.path} of table {entity}", "is a delete delta in an insert-only table", _FOREIGN
        )
    for path in directory.nested_directories:
        if is_acid_prefixed(path.rpartition("/")[2]):
            raise UnsupportedTableError(f"{path} of table {entity}", "is an ACID directory inside another", _FOREIGN)
    aborted = delta_with_aborted_rows(directory)
    if aborted is not None:
        raise UnsupportedTableError(
            f"{aborted} of table {entity}",
            "holds rows of aborted write ids, and its rows do not say whose they are",
            "compact it once the aborted transactions are cleaned, or find out what wrote it",
        )
    refuse_overlaps(entity, directory)


def refuse_originals(entity: Entity, directory: AcidDirectory, policy: CompactionPolicy) -> None:
    """Refuse a major of an insert-only partition whose original files readers do not agree on.

    Hive ignores them unless it is told otherwise (``HiveInputFormat.processForWriteIds``), Trino reads them.

    :raises UnsupportedTableError: there are some, and the site does not say that they are data.
    """
    for file in directory.originals:
        if file.size_bytes and not policy.mm_allow_originals:
            raise UnsupportedTableError(
                f"{file.path} of table {entity}",
                "lies outside of all ACID directories, where Hive ignores files of insert-only tables",
                "set [hive_acid] mm_allow_originals if Hive's hive.mm.allow.originals is on; else move it away",
            )


def insert_only_obstacle(directory: AcidDirectory, inputs: Deltas, policy: CompactionPolicy) -> str | None:
    """Why these deltas of an insert-only partition cannot be merged into one range; None where they can.

    Original files and the base are none of a minor's business and stay as they are.
    """
    return no_insert_only_minor(policy.hive) or range_obstacle(directory, inputs, policy, insert_only=True)


def insert_only_buckets(
    partition: PartitionState, type: CompactionType, inputs: Sequence[BaseDirectory | DeltaDirectory]
) -> tuple[BucketPlan, ...]:
    """The files of the inputs, and of a major without a base also the original files, by the number in their names.

    :param inputs: base first, then deltas in Hive's order.
    :raises UnknownNameError: a file of a bucketed table whose name does not say its bucket.
    """
    files = [file for directory in inputs for file in _by_path(directory.files)]
    if type is CompactionType.MAJOR:
        files = [*_by_path(partition.directory.originals), *files]
    found: dict[int, list[SourceFile]] = defaultdict(list)
    for file in files:
        found[_bucket(partition, file)].append(SourceFile(file.path, file.size_bytes))
    kept = _without_empty_files(found, partition.bucketed)
    return tuple(BucketPlan(OutputKind.ROWS, bucket, kept[bucket], ()) for bucket in sorted(kept))


def _by_path(files: Iterable[FileEntry]) -> list[FileEntry]:
    return sorted(files, key=lambda file: file.path)


def _bucket(partition: PartitionState, file: FileEntry) -> int:
    """The number before the first ``_``; any writer's files may share one where the table declares no buckets."""
    match = _NUMBERED.match(file.name)
    if match is not None:
        return int(match[1])
    if partition.bucketed:
        raise UnknownNameError(
            f"{file.path} of table {partition.entity}",
            "has no bucket number in its name (as in 000000_0), but the table is bucketed",
            _FOREIGN,
        )
    return 0


def _without_empty_files(
    found: Mapping[int, Sequence[SourceFile]], bucketed: bool
) -> dict[int, tuple[SourceFile, ...]]:
    """Files of 0 bytes hold no rows in any format.

    A bucketed table keeps one for a bucket that has no other file: readers may count on one file per bucket.
    """
    kept = {bucket: tuple(file for file in files if file.size_bytes) for bucket, files in found.items()}
    if bucketed:
        return {bucket: files or (found[bucket][0],) for bucket, files in kept.items()}
    return {bucket: files for bucket, files in kept.items() if files}
