"""Hive 3 takes the maximum of timestamps without what is below its millisecond, and must find the last one yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.merge.files.answers import Merged
from airflow_provider_acid.plan.plan import CopiedStripes
from tests.unit.merge.acid_files import STAGING, Partition, insert
from tests.unit.merge.test_misleading_limits import deltas, written

SECOND = 1_577_836_800
FINE, WHOLE = (SECOND, 123_000_500), (SECOND, 123_000_000)
LATER = (SECOND + 86_400, 0)
BEFORE_1970 = (-5, 250_000_000)
KINDS: dict[str, Any] = {"timestamp": lambda value: value, "array<timestamp>": lambda value: [value]}
ON_HIVE_3, ON_HIVE_4 = "base_0001000", "base_0001000_v0000077"


def merge(partition: Partition, target: str) -> Merged:
    return partition.merge(target=target, stripe_copy=CopiedStripes.NEVER)


def limits(partition: Partition, merged: Merged, column: int) -> Iterator[Any]:
    found = [found for of, found in written(partition, merged).statistics() if of == column]
    assert len(found) >= 3
    yield from (each.timestampStatistics for each in found if each.numberOfValues)


def nanoseconds(moment: tuple[int, int]) -> int:
    return moment[0] * 10**9 + moment[1]


@pytest.mark.parametrize("other", [FINE, BEFORE_1970], ids=["arrow", "exact"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("values", [[FINE], [WHOLE, FINE], [FINE] * 10_000 + [LATER]])
def test_hive_3_looks_where_the_last_moment_is(
    tmp_path: Path, kind: str, other: tuple[int, int], values: list[tuple[int, int]]
) -> None:
    """Measured on Hive 3.1.3: found before a merge without the row behind it, not after one."""
    partition = Partition(tmp_path, (kind, "timestamp"))
    deltas(partition, [[KINDS[kind](value) for value in values]], other)
    merged = merge(partition, ON_HIVE_3)
    found = list(limits(partition, merged, 8 if "<" in kind else 7))
    assert all(part.maximumUtc * 10**6 >= nanoseconds(FINE) and part.maximumNanos == 1 for part in found)
    assert {part.minimumUtc for part in found} <= {nanoseconds(moment) // 10**6 for moment in (FINE, LATER)}
    assert partition.read(merged) == [insert(1, row, KINDS[kind](value), other) for row, value in enumerate(values)]
    assert [f"{STAGING}/attempts/{name}" for name in partition.attempts()] == [merged.attempt]


@pytest.mark.parametrize(("target", "moment"), [(ON_HIVE_3, WHOLE), (ON_HIVE_4, FINE)])
def test_limits_stay_where_the_millisecond_is_whole_and_for_hive_4(
    tmp_path: Path, target: str, moment: tuple[int, int]
) -> None:
    partition = Partition(tmp_path, ("timestamp",))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, moment)])
    found = {(part.maximumUtc, part.maximumNanos) for part in limits(partition, merge(partition, target), 7)}
    assert found == {(nanoseconds(moment) // 10**6, moment[1] % 10**6 + 1)}
