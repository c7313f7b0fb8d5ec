from __future__ import annotations

import pytest

from airflow_provider_acid.compaction.evaluate.budget import RunBudget
from airflow_provider_acid.exceptions import ConfigurationError


@pytest.mark.parametrize(
    ("scenario", "partitions", "input_bytes", "sizes", "taken"),
    [
        ("nothing is due", 3, 100, [], 0),
        ("no bound on bytes", 3, None, [10**12] * 5, 3),
        ("all fit", 5, 100, [50, 50], 2),
        ("as many as partitions are allowed", 2, 100, [1, 1, 1], 2),
        ("up to the one that does not fit", 5, 100, [60, 30, 11, 1], 2),
        ("no smaller one is taken before a worse", 5, 100, [60, 50, 1], 1),
        ("the worst is taken though it is larger than the budget", 5, 100, [1000, 1], 1),
        ("and alone, though the next has nothing to read", 5, 100, [101, 0], 1),
        ("also after those that count no bytes", 5, 100, [0, 0, 1000, 1], 3),
        ("what counts no bytes is bounded by number", 2, 1, [0, 0, 0], 2),
    ],
)
def test_a_run_takes_the_worst_as_far_as_the_budget_goes(
    scenario: str, partitions: int, input_bytes: int | None, sizes: list[int], taken: int
) -> None:
    assert RunBudget(partitions, input_bytes).takes(sizes) == taken, scenario


@pytest.mark.parametrize(("partitions", "input_bytes"), [(0, None), (-1, 5), (1, 0)])
def test_a_budget_that_allows_nothing_is_refused(partitions: int, input_bytes: int | None) -> None:
    with pytest.raises(ConfigurationError, match="budget of a run"):
        RunBudget(partitions, input_bytes)
