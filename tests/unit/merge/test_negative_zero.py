"""-0.0 is equal to 0.0 in Hive's rows, and below it in Hive's limits: none of these may end with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_acid.plan.plan import CopiedStripes
from tests.unit.merge.acid_files import Partition, insert
from tests.unit.merge.striped_files import BASE, attempt, source_stripes, stripes_of, write_in_stripes
from tests.unit.merge.test_misleading_limits import WAYS, deltas, hive_looks_at, merge, written


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["double", "float"])
@pytest.mark.parametrize("values", [[-0.0, -1.5], [-0.0] * 10_000 + [7.5], [0.5] * 10_000 + [-0.0, -0.0]])
def test_a_negative_zero_is_found_as_zero(tmp_path: Path, kind: str, way: str, values: list[float]) -> None:
    """Hive's rows hold them for equal, its limits do not; also where the stripe's limits hide those of a row group."""
    partition = Partition(tmp_path, (kind, WAYS[way][0]))
    deltas(partition, [values], WAYS[way][1])
    found = [found for column, found in written(partition, merge(partition)).statistics() if column == 7]
    assert all(hive_looks_at(statistics, True, 0.0) for statistics in found)


def test_stripes_whose_limits_end_with_a_negative_zero_are_decoded(tmp_path: Path) -> None:
    """Hive takes it for less than 0.0, and looks at a stripe's limits where there are no deltas only."""
    partition = Partition(tmp_path, ("double",))
    write_in_stripes(partition, BASE, [insert(3, row_id, -0.0 if row_id == 5 else -1.5) for row_id in range(200)])
    before = source_stripes(partition)
    found = stripes_of(attempt(partition, partition.merge(stripe_copy=CopiedStripes.ALWAYS)))
    assert [stripe in before for stripe in found] == [False, True]
