"""Side files of tables, and what a compaction notes in its staging directory."""

from __future__ import annotations

import json
from collections.abc import Sequence

from airflow_provider_acid.acid.names import DATA_FORMATS, METADATA_CONTENT, parse_data_format, parse_flush_length
from airflow_provider_acid.compaction.publish.journal import PublicationJournal
from airflow_provider_acid.compaction.publish.replaced import replaced_names
from tests.harness.fuzzing.subject import Subject


def metadata() -> Sequence[bytes]:
    """Of a compaction and of a TRUNCATE."""
    return [METADATA_CONTENT, METADATA_CONTENT.replace(b"compacted", b"truncated")]


def read_metadata(document: bytes) -> None:
    """One of the formats that Hive writes."""
    assert parse_data_format(document, "file") in DATA_FORMATS


def read_flush_length(document: bytes) -> None:
    """The last number of a side file, never below zero."""
    assert parse_flush_length(document, "file") == int.from_bytes(document[-8:], "big") >= 0


def journals() -> Sequence[bytes]:
    """Of renames and of copies."""
    pair = ("delta_0000001_0000005_v0000012", "delete_delta_0000001_0000005_v0000012")
    files = (f"{pair[0]}/bucket_00000", f"{pair[0]}/_orc_acid_version")
    made = (PublicationJournal(pair, 12, 7), PublicationJournal(pair[:1], 12, None, files))
    return [journal.to_json().encode() for journal in made]


def read_journal(document: bytes) -> None:
    """What is read is written in the same form again."""
    journal = PublicationJournal.from_json(document)
    assert PublicationJournal.from_json(journal.to_json()) == journal


def replaced() -> Sequence[bytes]:
    """Names of directories and files."""
    names = ["delta_0000001_0000001_0000", "base_0000003", "000000_0"]
    return [json.dumps({"format_version": 1, "names": names}).encode()]


def read_replaced(document: bytes) -> None:
    """Names only."""
    assert all(isinstance(name, str) for name in replaced_names(document))


METADATA = Subject("metadata_acid", metadata, read_metadata)
FLUSH_LENGTHS = Subject(
    "flush_lengths", lambda: [(5000).to_bytes(8, "big"), bytes(8) + (1 << 40).to_bytes(8, "big")], read_flush_length
)
JOURNALS = Subject("journals", journals, read_journal)
REPLACED = Subject("replaced", replaced, read_replaced)
