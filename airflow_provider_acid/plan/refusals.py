"""Partitions that are refused by name, because merging them could lose, double, hide or bring back rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from airflow_provider_acid.acid.directory import AcidDirectory, BaseDirectory, DeltaDirectory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.names import NO_STATEMENT, BaseName, DeltaName, is_flush_length, parse_directory_name
from airflow_provider_acid.acid.unseen import deltas_above
from airflow_provider_acid.exceptions import UnknownNameError, UnsupportedTableError


def refuse_unsupported(entity: Entity, directory: AcidDirectory) -> None:
    """Refuse a partition that cannot be compacted, whichever way.

    :raises UnsupportedTableError: the partition holds something that is not compacted.
    :raises UnknownNameError: the partition holds a file that no rule explains.
    """
    _refuse_unsupported_files(entity, directory)
    found = half_published(directory)
    if found:
        raise half_published_error(str(entity), found)
    refuse_overlaps(entity, directory, keys_are_checked=True)


def _refuse_unsupported_files(entity: Entity, directory: AcidDirectory) -> None:
    nested: Iterable[str] = directory.nested_directories
    for path in nested:
        raise UnsupportedTableError(
            f"{path} of table {entity}",
            "is a directory inside an ACID directory, which no version of Hive makes in a full ACID table",
            "find out what wrote it and move it out of the table",
        )
    for path in _unread_side_files(directory):
        raise UnsupportedTableError(
            f"{path} of table {entity}",
            "is the side file of a streaming writer in a directory where Hive does not read any, so that readers may "
            "disagree on how much of the file is committed",
            "find out what wrote it and remove it, or the part of the file that it leaves out",
        )
    for path in directory.unknown_files:
        raise UnknownNameError(
            f"{path} of table {entity}",
            "follows none of the name rules of Hive, Trino and the streaming writers",
            "find out what wrote it and move it out of the table",
        )


def _unread_side_files(directory: AcidDirectory) -> Iterator[str]:
    """Side files outside of deltas of several write ids (``AcidUtils.ParsedDeltaLight.mayContainSideFile``)."""
    for part in directory.current:
        found = [file.path for file in part.files if is_flush_length(file.name)]
        if found and not _may_hold_side_files(part.name):
            yield from found


def _may_hold_side_files(name: BaseName | DeltaName) -> bool:
    is_streamed = isinstance(name, DeltaName) and not name.is_delete and name.statement_id == NO_STATEMENT
    return isinstance(name, DeltaName) and is_streamed and name.min_write_id != name.max_write_id


def refuse_overlaps(entity: Entity, directory: AcidDirectory, *, keys_are_checked: bool = False) -> None:
    """Refuse directories that share write ids.

    :param keys_are_checked: the merge refuses rows that come twice. Then Hive 4's names are accepted: its compactions
        by query are named after the high-water mark, which may lie inside a delta that is still streamed to, and that
        they left out whole.
    :raises UnsupportedTableError: naming two of them.
    """
    remedy = "let Hive's own compactor handle this partition, or find out what wrote the directories"
    base = directory.base
    for delta in directory.deltas if base else ():
        assert base is not None
        named_by_mark = keys_are_checked and _may_be_named_by_mark(base.name, delta.name)
        if delta.name.min_write_id <= base.write_id and not named_by_mark:
            raise UnsupportedTableError(
                f"{delta.path} of table {entity}", f"reaches below the base {base.path}", remedy
            )
    for one, other in pairwise(directory.deltas):
        if _range(one.name) == _range(other.name):
            _refuse_twins(entity, one, other)
        elif other.name.min_write_id <= one.name.max_write_id:
            if keys_are_checked and _may_be_named_by_mark(one.name, other.name):
                continue
            raise UnsupportedTableError(
                f"{other.path} of table {entity}", f"overlaps {one.path}, and rows of both would be read", remedy
            )
    for delta in deltas_above(directory):
        for part in directory.current:
            named_by_mark = keys_are_checked and _may_be_named_by_mark(part.name, delta.name)
            if delta.name.min_write_id <= _highest(part) and not named_by_mark:
                raise UnsupportedTableError(
                    f"{delta.path} of table {entity}",
                    f"is still written to, and begins below the end of {part.path}",
                    remedy,
                )


def _may_be_named_by_mark(compacted: BaseName | DeltaName, delta: DeltaName) -> bool:
    is_streamed = delta.statement_id == NO_STATEMENT and not delta.visibility_txn_id and not delta.is_delete
    return compacted.visibility_txn_id > 0 and is_streamed


def _highest(part: BaseDirectory | DeltaDirectory) -> int:
    return part.write_id if isinstance(part, BaseDirectory) else part.name.max_write_id


def _refuse_twins(entity: Entity, one: DeltaDirectory, other: DeltaDirectory) -> None:
    same_statement = one.name.statement_id == other.name.statement_id
    if same_statement and one.name.is_delete == other.name.is_delete:
        raise UnsupportedTableError(
            f"{one.path} and {other.path} of table {entity}",
            "hold the same range of write ids twice, so that Hive reads its rows twice (HIVE-29210)",
            "run acid_housekeeping, which tells which of the two holds all that the other holds; with repair_twins it "
            "removes the other",
        )


def half_published(directory: AcidDirectory) -> tuple[str, str] | None:
    """A compacted delta, and one of the other kind that it hides although its own twin is missing.

    A minor compaction publishes two directories; between the two, one kind hides sources of the other.

    :return: both paths; None where there is nothing of the sort.
    """
    if not directory.obsolete:
        return None
    names = {delta.name for delta in directory.deltas}
    kinds_by_range = {(_range(name), name.is_delete) for name in names}
    for delta in directory.deltas:
        if delta.name.statement_id != NO_STATEMENT or (_range(delta.name), not delta.name.is_delete) in kinds_by_range:
            continue
        for path in directory.obsolete:
            hidden = parse_directory_name(path) if "/" not in path else None
            if isinstance(hidden, DeltaName) and _is_hidden_by(hidden, delta.name):
                return delta.path, path
    return None


def half_published_error(subject: str, found: tuple[str, str]) -> UnsupportedTableError:
    """The error that names what :func:`half_published` found.

    :param subject: table or partition.
    """
    return UnsupportedTableError(
        f"{found[0]} of table {subject}",
        f"hides {found[1]}, which holds the other kind of data: a minor compaction was published by half",
        "run the compaction operator on it, which first completes or undoes what an attempt of its own left; "
        "where it was another program's, restore the missing directory, or move this one out of the table",
    )


def _is_hidden_by(hidden: DeltaName, delta: DeltaName) -> bool:
    inside = delta.min_write_id <= hidden.min_write_id and hidden.max_write_id <= delta.max_write_id
    return inside and hidden.is_delete != delta.is_delete


def _range(name: DeltaName) -> tuple[int, int]:
    return name.min_write_id, name.max_write_id
