"""The fuzzing notices each way in which a reader can go wrong, and plays the same cases every time."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from airflow_provider_acid.exceptions import CorruptFileError
from tests.harness.fuzzing.mutation import case_bytes
from tests.harness.fuzzing.player import FuzzError, play_cases
from tests.harness.fuzzing.subject import Subject

WHOLE = b'{"a": [1, 2], "b": "text"}'


def seeds() -> Sequence[bytes]:
    return [WHOLE]


def _raise(document: bytes) -> None:
    if document != WHOLE:
        raise ValueError("bare")


def _refuse(document: bytes) -> None:
    if document != WHOLE:
        raise CorruptFileError("document", "is damaged", "write it again")


def _give_wrong(document: bytes) -> None:
    assert document == WHOLE, "another row"


def _die(document: bytes) -> None:
    if document != WHOLE:
        os._exit(0)


def _hang(document: bytes) -> None:
    if document != WHOLE:
        time.sleep(60)


def _swell(document: bytes) -> None:
    if document != WHOLE:
        bytearray(b"x") * 40_000_000


RAISES = Subject("raises", seeds, _raise)
REFUSES = Subject("refuses", seeds, _refuse)
GIVES_WRONG = Subject("gives-wrong", seeds, _give_wrong)
DIES = Subject("dies", seeds, _die)
HANGS = Subject("hangs", seeds, _hang)
SWELLS = Subject("swells", seeds, _swell, most_bytes=8_000_000)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("RAISES", "ValueError, which is none of the project's errors: bare"),
        ("GIVES_WRONG", "wrong: another row"),
        ("DIES", "the process died at case 0"),
        ("HANGS", "case 0 hangs"),
        ("SWELLS", "bytes; 8,000,000 are allowed"),
    ],
)
def test_a_find_is_told_with_its_case(name: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(FuzzError, match="case 0") as found:
        play_cases(f"tests.unit.harness.test_fuzzing.{name}", range(0, 5), tmp_path)
    assert what in str(found.value)


def test_the_corpus_is_played_first_and_refusals_are_counted(tmp_path: Path) -> None:
    (tmp_path / "refuses").mkdir()
    (tmp_path / "refuses" / "17").write_bytes(WHOLE)
    figures = play_cases("tests.unit.harness.test_fuzzing.REFUSES", range(0, 30), tmp_path)
    assert figures.total() == 31
    assert figures["read"] >= 1
    assert figures["CorruptFileError"] >= 25


def test_a_case_is_the_same_for_ever() -> None:
    assert [case_bytes("a", number, seeds()) for number in range(50)] == [
        case_bytes("a", number, seeds()) for number in range(50)
    ]
    assert len({case_bytes("a", number, seeds()) for number in range(50)}) > 40
