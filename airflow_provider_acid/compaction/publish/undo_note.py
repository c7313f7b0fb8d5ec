"""What a compaction replaced, file by file, noted in its staging directory before it is published: for an undo.

An undo goes by it to find out whether all of that is still there, whole. It is no list of what may be deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.names import DeltaName, is_acid_prefixed, parse_directory_name
from airflow_provider_acid.compaction.publish.staging import read_note, staging_name
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.values import CompactionRow
from airflow_provider_acid.plan.exchange import UNDO_FILE
from airflow_provider_acid.plan.plan import FORMAT_VERSION, CompactionPlan


@dataclass(frozen=True)
class ReplacedFile:
    """A file that a compaction merged.

    :param path: below the partition's location.
    """

    path: str
    size_bytes: int


@dataclass(frozen=True)
class UndoNote:
    """What a compaction replaced.

    :param targets: names of the result's directories.
    :param transaction: the compaction's.
    :param directories: of bases and deltas that it merged.
    :param files: in these, and original files; the side files of streaming writers, too.
    :param aborted: write ids whose rows lie in these files and were dropped, ascending.
    """

    targets: tuple[str, ...]
    transaction: int
    directories: tuple[str, ...]
    files: tuple[ReplacedFile, ...]
    aborted: tuple[int, ...]

    @classmethod
    def of(cls, plan: CompactionPlan, txn_id: int) -> UndoNote:
        """What a plan's result replaces."""
        files = (*plan.input_files, *plan.side_files)
        deltas = [name for name in map(parse_directory_name, plan.directories) if isinstance(name, DeltaName)]
        # A compaction's own deltas span aborted write ids without holding their rows.
        spans = [(delta.min_write_id, delta.max_write_id) for delta in deltas if not delta.visibility_txn_id]
        return cls(
            plan.targets,
            txn_id,
            plan.directories,
            tuple(ReplacedFile(file.path, file.size_bytes) for file in files),
            tuple(id for id in plan.aborted_write_ids if any(first <= id <= last for first, last in spans)),
        )

    @property
    def original_files(self) -> frozenset[str]:
        """The files from before the table became transactional."""
        return frozenset(file.path for file in self.files if not is_acid_prefixed(file.path))

    def missing(self, listing: Listing) -> tuple[str, ...]:
        """What is not there any more, or is of another size; empty where all is there, whole."""
        sizes = {file.path: file.size_bytes for file in listing.files}
        directories = set(self.directories) - set(listing.directories)
        files = {file.path for file in self.files if sizes.get(file.path) != file.size_bytes}
        return tuple(sorted(directories | files))

    def to_json(self) -> str:
        """The note as a JSON document."""
        return fields.versioned_document(self, FORMAT_VERSION)

    @classmethod
    def from_json(cls, document: bytes) -> UndoNote:
        """Read a note.

        :raises ConfigurationError: it is none of this version.
        """
        return fields.read_as(cls, fields.versioned(document, "note for an undo", FORMAT_VERSION))


def write_undo_note(storage: Storage, plan: CompactionPlan, txn_id: int) -> None:
    """Note what a plan's result replaces, in its staging directory.

    :raises StorageError: it cannot be written.
    """
    storage.write_new(f"{plan.staging}/{UNDO_FILE}", UndoNote.of(plan, txn_id).to_json().encode())


def read_undo_note(storage: Storage, staging: str) -> UndoNote | None:
    """What is noted in a staging directory; None where nothing is, or nothing that can be understood.

    :raises StorageError: it exists but cannot be read now.
    """
    return read_note(storage, f"{staging}/{UNDO_FILE}", UndoNote.from_json)


def serves_an_undo(storage: Storage, token: str, rows: Iterable[CompactionRow]) -> bool:
    """Whether an attempt's staging directory has the note of what a result replaced that waits to be cleaned.

    The row of a request that others made does not tell the token. Nothing is read where no result waits.

    :param rows: of the partition.
    :raises StorageError: a note exists but cannot be read now.
    """
    waiting = {row.txn_id for row in rows if row.waits_to_be_cleaned}
    note = read_undo_note(storage, staging_name(token)) if waiting else None
    return note is not None and note.transaction in waiting
