"""The journal of a publication that takes two renames, or any number of copies.

It lies in the staging directory from before the first rename until the staging directory goes, and so says of one
published directory that it is half of a pair, or lacks files, whatever has become of the attempt.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import filterfalse

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.names import parse_directory_name
from airflow_provider_acid.compaction.publish.staging import read_note
from airflow_provider_acid.exceptions import ConfigurationError, UnknownNameError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.plan.exchange import JOURNAL_FILE
from airflow_provider_acid.plan.plan import FORMAT_VERSION


@dataclass(frozen=True)
class PublicationJournal:
    """What is about to be published.

    :param targets: names of the directories, in the order of the renames.
    :param transaction: the compaction's transaction.
    :param lock: id of its EXCLUSIVE lock; None where publishing goes without one.
    :param files: data files that appear one by one, with their directories; empty where directories are renamed.
    """

    targets: tuple[str, ...]
    transaction: int
    lock: int | None
    files: tuple[str, ...] = ()

    def is_half(self, published: Listing) -> bool:
        """Whether a part of it is there, and a part is not.

        :param published: of the partition.
        """
        directories = set(published.directories).intersection(self.targets)
        files = {file.path for file in published.files}
        is_whole = len(directories) == len(self.targets) and files.issuperset(self.files)
        return bool(directories) and not is_whole

    def to_json(self) -> str:
        """The journal as a JSON document."""
        return fields.versioned_document(self, FORMAT_VERSION)

    @classmethod
    def from_json(cls, document: str | bytes) -> PublicationJournal:
        """Read a journal.

        :raises ConfigurationError: the document is not a journal of this version.
        """
        journal = fields.read_as(cls, fields.versioned(document, "publication journal", FORMAT_VERSION))
        odd = [*filterfalse(_is_target, journal.targets), *filterfalse(journal._is_own, journal.files)]
        if odd:
            reason = f"names {odd[0]!r}, which no compaction of its partition publishes"
            raise ConfigurationError("publication journal", reason, "find out who wrote it, and remove it")
        return journal

    def _is_own(self, path: str) -> bool:
        """Whether a file lies right in one of the targets; marker files are published, too."""
        target, _, name = path.partition("/")
        return target in self.targets and name not in ("", ".", "..") and "/" not in name


def _is_target(name: str) -> bool:
    """Whether a compaction publishes directories of such names, which lie in its partition."""
    try:
        return parse_directory_name(name) is not None
    except UnknownNameError:
        return False


def write_journal(storage: Storage, staging: str, journal: PublicationJournal) -> None:
    """Put the journal into a staging directory."""
    storage.write_new(f"{staging}/{JOURNAL_FILE}", journal.to_json().encode())


def read_journal(storage: Storage, staging: str) -> PublicationJournal | None:
    """The journal in a staging directory; None where there is none, or none that can be understood.

    One that cannot be read now is not taken for none: it may be all that tells of half of a result, and whoever knew
    nothing of it would remove it together with the other half.

    :raises StorageError: it exists but cannot be read now.
    """
    return read_note(storage, f"{staging}/{JOURNAL_FILE}", PublicationJournal.from_json)


def find_journal(storage: Storage, stagings: Iterable[str], txn_id: int) -> PublicationJournal | None:
    """The journal of a transaction, in whichever staging directory; None where there is none.

    :raises StorageError: one exists but cannot be read now.
    """
    journals = (read_journal(storage, staging) for staging in stagings)
    return next((journal for journal in journals if journal is not None and journal.transaction == txn_id), None)
