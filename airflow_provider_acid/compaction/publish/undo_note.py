"""What a compaction replaced, file by file, noted in its staging directory before it is published: for an undo.

An undo goes by it to find out whether all of that is still there, whole. It is no list of what may be deleted.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.names import DeltaName, is_acid_prefixed, parse_directory_name
from airflow_provider_acid.exceptions import ConfigurationError, CorruptFileError, StorageError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.plan.exchange import UNDO_FILE
from airflow_provider_acid.plan.plan import FORMAT_VERSION, CompactionPlan
from airflow_provider_acid.storages.small_files import EXCHANGE_FILE_BYTES

log = logging.getLogger(__name__)


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
    path = f"{staging}/{UNDO_FILE}"
    try:
        return UndoNote.from_json(storage.read(path, EXCHANGE_FILE_BYTES))
    except StorageError:
        if storage.exists(path):
            raise
        return None
    except (ConfigurationError, CorruptFileError) as error:
        log.warning("%s is passed over: %s", join(storage.location, path), error)
        return None
