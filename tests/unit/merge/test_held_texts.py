"""Stripes end where ORC's writer would hold too much of texts, and nothing else changes by that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_acid.merge import merge_rows
from airflow_provider_acid.merge.rows import arrow_rows
from airflow_provider_acid.merge.rows.held_texts import HeldTexts
from airflow_provider_acid.plan.plan import CopiedStripes
from tests.harness.forced_batches import batches_of
from tests.unit.merge.acid_files import Partition, delete, insert
from tests.unit.merge.striped_files import BASE, DELETES, striped_partition

ROWS = 10_000

TWICE = [f"text {number // 2}" for number in range(ROWS)]
ONCE = [f"text {number}" for number in range(ROWS)]

HELD: dict[str, tuple[Any, int, int]] = {
    "numbers": (pa.array(range(ROWS)), 0, 0),
    "one text": (pa.array(["text"] * ROWS), 8 * ROWS, 9 * ROWS),
    "each text twice": (pa.array(TWICE), 88 * ROWS, 105 * ROWS),
    "texts that all differ get no dictionary": (pa.array(ONCE), 0, 0),
    "so few that it may get one": (pa.array(ONCE[:1000]), 168 * 1000, 190 * 1000),
    "NULLs": (pa.nulls(ROWS, pa.string()), 8 * ROWS, 9 * ROWS),
    "in structs": (pa.StructArray.from_arrays([pa.array(TWICE)], names=["a"]), 88 * ROWS, 105 * ROWS),
    "in lists": (pa.array([["text"] * 10] * 1000), 8 * ROWS, 9 * ROWS),
    "in maps": (pa.array([[("key", "value")]] * ROWS, pa.map_(pa.string(), pa.string())), 16 * ROWS, 18 * ROWS),
    "bytes have no dictionary": (pa.array([b"x"] * ROWS), 0, 0),
    "no rows": (pa.array([], pa.string()), 0, 0),
}


@pytest.mark.parametrize("case", HELD)
def test_what_a_writer_holds_of_texts(case: str) -> None:
    column, least, most = HELD[case]
    held = HeldTexts()
    held.add([column], 3)
    assert least <= held.held_bytes <= most


def test_it_grows_until_a_stripe_has_ended() -> None:
    held, found = HeldTexts(), []
    for written_bytes in (3, 3, 3, 1000, 1000):
        held.add([pa.array(TWICE)], written_bytes)
        found.append(held.held_bytes // ROWS // 85)
    assert found == [1, 2, 3, 1, 2]


def test_a_dictionary_that_was_begun_goes_on_with_texts_that_all_differ() -> None:
    held = HeldTexts()
    for texts in (TWICE, ONCE):
        held.add([pa.array(texts)], 3)
    assert held.held_bytes > (88 + 168) * ROWS


@pytest.mark.parametrize("mode", list(CopiedStripes))
@pytest.mark.parametrize("aborted", [(), (6,), (3, 6, 7, 9)])
def test_stripes_that_end_early_hold_the_same_rows(
    mode: CopiedStripes, aborted: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = striped_partition(tmp_path)
    partition.write(DELETES, [delete(3, row_id, 10) for row_id in range(0, 1000, 9)])
    monkeypatch.setattr(merge_rows, "_FEW_ROWS", 0)
    wanted = partition.merge(stripe_copy=mode, aborted=aborted)
    monkeypatch.setattr(arrow_rows, "MAX_HELD_BYTES", 0)
    with batches_of(30):
        found = partition.merge(stripe_copy=mode, aborted=aborted)
    assert replace(found.file, size_bytes=0, stripes=0) == replace(wanted.file, size_bytes=0, stripes=0)
    if found.attempt is None:
        assert wanted.attempt is None
        return
    assert partition.read(found) == partition.read(wanted)
    assert found.file.stripes > 3 * wanted.file.stripes or mode is CopiedStripes.ALWAYS


def test_many_rows_of_which_all_stay_are_written_as_few_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = Partition(tmp_path, ("string",))
    partition.write(BASE, [insert(3, row_id, f"text {row_id}") for row_id in range(100)])
    few = partition.merge()
    monkeypatch.setattr(merge_rows, "_FEW_ROWS", 0)
    for mode in CopiedStripes:
        assert partition.read(partition.merge(stripe_copy=mode)) == partition.read(few)
