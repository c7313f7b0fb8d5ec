"""Notes on a row: they fit, they come back, and nobody else's are taken for ours."""

from __future__ import annotations

import json

import pytest

from airflow_provider_acid.metastore.hive3.row_notes import CUT, NOTES_BYTES, Published, RowNotes

OTHER_FORMAT = b'{"airflow_provider_acid":2,"pool":"p"}'
FULL = RowNotes("pool", 7, Published(8, 0, 9), "why", True)


@pytest.mark.parametrize("notes", [RowNotes(), RowNotes(pool="p"), RowNotes(txn_id=3), RowNotes(message=""), FULL])
def test_notes_come_back_as_they_were(notes: RowNotes) -> None:
    assert RowNotes.parse(notes.stored()) == notes


@pytest.mark.parametrize("letter", ["x", "ü", "𝄞", '"', "\n", "\\"])
def test_a_long_message_is_cut_and_nothing_else(letter: str) -> None:
    notes = RowNotes("pool", 7, Published(8, 1, 9), letter * 5000, True)
    stored = notes.stored()
    assert NOTES_BYTES - 12 < len(stored) <= NOTES_BYTES
    read = RowNotes.parse(stored)
    assert read.message is not None
    assert read.message == letter * (len(read.message) - 1) + CUT
    assert (read.pool, read.txn_id, read.published, read.refused) == ("pool", 7, Published(8, 1, 9), True)


def test_a_message_that_just_fits_is_whole() -> None:
    room = NOTES_BYTES - len(RowNotes(message="").stored())
    for length, is_whole in ((room, True), (room + 1, False)):
        read = RowNotes.parse(RowNotes(message="x" * length).stored()).message
        assert (read == "x" * length) is is_whole


@pytest.mark.parametrize(
    "stored",
    [
        None,
        b"",
        b"\xff\xfe",
        b"not json",
        b"[]",
        b'"text"',
        b"{}",
        b'{"pool":"p"}',
        b'{"airflow_provider_acid":2,"pool":"p"}',
    ],
)
def test_what_others_wrote_there_says_nothing(stored: bytes | None) -> None:
    assert RowNotes.parse(stored) == RowNotes()


@pytest.mark.parametrize(
    "published",
    [5, {}, {"next_txn_id": 1, "newest_lock_id": 2}, {"next_txn_id": True, "newest_lock_id": 2, "at_ms": 3}],
)
def test_half_a_publication_is_none(published: object) -> None:
    stored = json.dumps({"airflow_provider_acid": 1, "pool": "a", "txn_id": 7, "published": published}).encode()
    assert RowNotes.parse(stored) == RowNotes()


def test_a_text_that_is_no_unicode_can_be_noted() -> None:
    assert RowNotes.parse(RowNotes(message="a\udcffb").stored()).message == "a?b"


def test_the_form_in_which_rows_hold_their_notes_stays() -> None:
    stored = (
        b'{"airflow_provider_acid":1,"pool":"a","txn_id":7,'
        b'"published":{"next_txn_id":1,"newest_lock_id":2,"at_ms":3},"message":"m","refused":true}'
    )
    notes = RowNotes("a", 7, Published(1, 2, 3), "m", refused=True)
    assert RowNotes.parse(stored) == notes
    assert notes.stored() == stored
