"""Many histories from one seed, by hypothesis, which shrinks the one that fails."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.harness.acid_history.generated import histories
from tests.harness.acid_history.player import HistoryError, play
from tests.harness.acid_history.steps import History

HISTORIES_PER_SEED = 100

_MEMORY = Path("/dev/shm")
"""Where Linux keeps files in memory: what is synced to disk there takes no time."""


def play_seed(number: int, count: int = HISTORIES_PER_SEED) -> Counter[str]:
    """Play the histories of a seed, always the same ones.

    :returns: the sum of their figures.
    :raises HistoryError: with the script of the shortest failing history that was found.
    """
    figures: Counter[str] = Counter()

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(histories)
    def play_one(history: History) -> None:
        figures["histories"] += 1
        with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
            figures.update(play(history, Path(folder)))

    try:
        play_one()
    except HistoryError as error:
        raise HistoryError(f"seed {number}: {error}") from error
    return figures
