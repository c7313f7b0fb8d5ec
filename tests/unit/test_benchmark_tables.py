"""The tables of ``./benchmark`` are as wide as its keys say."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.acid_tables import Shape, write_table
from benchmarks.row_kinds import ORDERS, STORE_SALES, WEB_SALES, RowKind

ROWS = 60_000


@pytest.mark.parametrize(("kind", "row_bytes"), [(ORDERS, 16), (STORE_SALES, 60), (WEB_SALES, 200)])
def test_rows_take_as_many_bytes_as_their_name_says(kind: RowKind, row_bytes: int, tmp_path: Path) -> None:
    write_table(Shape(rows=ROWS, kind=kind), tmp_path)
    stored = sum(file.stat().st_size for file in tmp_path.glob("delta_*/bucket_*"))
    assert stored / ROWS == pytest.approx(row_bytes, rel=0.15)


@pytest.mark.parametrize("kind", [ORDERS, STORE_SALES, WEB_SALES])
def test_rows_are_the_same_ones_each_time(kind: RowKind) -> None:
    assert kind.make(5, 100).equals(kind.make(5, 100))
    assert not kind.make(5, 100).equals(kind.make(105, 100))
    assert kind.make(5, 100).type.names == list(kind.types)
