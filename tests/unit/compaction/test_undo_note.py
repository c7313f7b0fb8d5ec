"""What a compaction notes of that which it replaced, and how an undo finds out whether it is whole."""

from __future__ import annotations

import pytest

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.compaction.publish.undo_note import ReplacedFile, UndoNote
from airflow_provider_acid.exceptions import ConfigurationError

NOTE = UndoNote(
    ("base_0000005_v0000012",),
    12,
    ("base_0000002", "delta_0000003_0000005"),
    (
        ReplacedFile("000000_0", 7),
        ReplacedFile("base_0000002/bucket_00000", 8),
        ReplacedFile("delta_0000003_0000005/bucket_00000", 9),
    ),
    (4,),
)
FOUND = {file.path: file.size_bytes for file in NOTE.files}


def listing(files: dict[str, int], directories: tuple[str, ...] = NOTE.directories) -> Listing:
    return Listing(tuple(FileEntry(path, size) for path, size in files.items()), directories)


@pytest.mark.parametrize(
    ("found", "missing"),
    [
        (listing(FOUND), ()),
        (listing({**FOUND, "delta_0000006_0000006_0000/bucket_00000": 1}), ()),
        (listing(FOUND, NOTE.directories[:1]), ("delta_0000003_0000005",)),
        (listing({**FOUND, "000000_0": 6}), ("000000_0",)),
        (listing({path: size for path, size in FOUND.items() if size != 8}), ("base_0000002/bucket_00000",)),
    ],
    ids=["all there", "more than that", "a directory", "another size", "a file"],
)
def test_nothing_of_it_may_be_missing_or_of_another_size(found: Listing, missing: tuple[str, ...]) -> None:
    assert NOTE.missing(found) == missing


def test_files_from_before_the_table_became_transactional_lie_in_no_directory_of_it() -> None:
    assert NOTE.original_files == {"000000_0"}


def test_what_is_noted_is_read_again() -> None:
    assert UndoNote.from_json(NOTE.to_json().encode()) == NOTE


@pytest.mark.parametrize("change", ['"transaction": "12"', '"transaction": null'])
def test_what_is_no_note_is_not_understood(change: str) -> None:
    document = NOTE.to_json().replace('"transaction": 12', change)
    assert document != NOTE.to_json()
    with pytest.raises(ConfigurationError):
        UndoNote.from_json(document.encode())
