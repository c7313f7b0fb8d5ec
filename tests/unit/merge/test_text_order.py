"""Limits of texts are ordered by bytes, and Hive looks between them by UTF-16: it must find what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.merge.orc.schema import Kind
from airflow_provider_acid.plan.plan import CopiedStripes
from tests.unit.merge.acid_files import Partition, insert
from tests.unit.merge.orc_tails import Tail
from tests.unit.merge.striped_files import BASE, attempt, source_stripes, stripes_of, write_in_stripes
from tests.unit.merge.test_misleading_limits import WAYS, deltas, merge, written

WIDE, EMOJI = "\uff5e", "\U0001f600"


def in_javas_order(text: str) -> bytes:
    return text.encode("utf-16-be")


def hive_looks_at(statistics: Any, text: str) -> bool:
    """``RecordReaderImpl.evaluatePredicateRange`` for ``a = text``."""
    if not statistics.HasField("stringStatistics"):
        return True
    limits = statistics.stringStatistics
    low, point, high = (in_javas_order(each) for each in (limits.minimum.decode(), text, limits.maximum.decode()))
    return low <= point <= high


# Measured on the ORC readers of Hive 3.1.3 and 4.0.1.
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["string", "varchar(9)", "char(3)"])
@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([[WIDE], [EMOJI]], EMOJI),
        ([["a", f"{WIDE}b"], [EMOJI]], f"{WIDE}b"),
        ([["a"] * 9_999 + [f"x{WIDE}"], [f"x{EMOJI}", "y"]], f"x{WIDE}"),
        ([["x"] * 9_998 + [f"x{WIDE}", f"x{EMOJI}"], ["z"]], f"x{WIDE}"),
    ],
    ids=["below the least", "above the greatest", "one row group each", "within a row group"],
)
def test_a_text_is_found_where_hive_orders_otherwise(
    tmp_path: Path, kind: str, way: str, values: list[list[str]], text: str
) -> None:
    partition = Partition(tmp_path, (kind, WAYS[way][0]))
    deltas(partition, values, WAYS[way][1])
    padded = text.ljust(3) if kind == "char(3)" else text
    groups = [index for column, index in written(partition, merge(partition)).row_indexes() if column == 7]
    file = written(partition, merge(partition))
    whole = [file.footer.statistics[7], *(stripe.colStats[7] for stripe in file.tail.metadata.stripeStats)]
    place = [value for delta in values for value in delta].index(text) // 10_000
    assert all(hive_looks_at(found, padded) for found in (*whole, groups[0].entry[place].statistics))


@pytest.mark.parametrize("text", ["zebra", "\u4e2d\u6587", "\u00e9"])
def test_other_texts_keep_their_limits(tmp_path: Path, text: str) -> None:
    partition = Partition(tmp_path, ("string",))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, "a"), insert(1, 1, text)])
    found = [found.stringStatistics for of, found in written(partition, merge(partition)).statistics() if of == 7]
    assert {(limits.minimum, limits.maximum) for limits in found} == {(b"a", text.encode())}


def test_stripes_of_such_limits_are_decoded(tmp_path: Path) -> None:
    """Hive looks at a stripe's limits where there are no deltas only."""
    partition = Partition(tmp_path, ("string",))
    write_in_stripes(partition, BASE, [insert(3, row_id, EMOJI if row_id == 5 else "a") for row_id in range(200)])
    before = source_stripes(partition)
    found = stripes_of(attempt(partition, partition.merge(stripe_copy=CopiedStripes.ALWAYS)))
    assert [stripe in before for stripe in found] == [False, True]


def as_char(path: Path, length: int) -> None:
    """Say in a file that its texts are such chars, as Trino writes them: without spaces."""
    tail = Tail(path.read_bytes())
    tail.footer.types[7].kind, tail.footer.types[7].maximumLength = int(Kind.CHAR), length
    path.write_bytes(tail.sealed())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("value", "is_certain"), [("ab", False), ("ab   ", True), ("\u4e2d    ", True)])
def test_a_char_without_its_spaces_is_no_limit(tmp_path: Path, way: str, value: str, is_certain: bool) -> None:
    """Hive looks for it with the spaces, which is more."""
    partition = Partition(tmp_path, ("char(5)", WAYS[way][0]))
    types = ("string", WAYS[way][0])
    source = partition.write("delta_0000001_0000001_0000", [insert(1, 0, value, WAYS[way][1])], types=types)
    as_char(tmp_path / source.path, 5)
    partition.rows.clear()
    partition.add("delta_0000001_0000001_0000")
    merged = merge(partition)
    found = [found.HasField("stringStatistics") for of, found in written(partition, merged).statistics() if of == 7]
    assert set(found) == {is_certain}
    assert [event[5][0] for event in partition.read(merged)] == [value]
