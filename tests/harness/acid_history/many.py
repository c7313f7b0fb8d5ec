"""Many histories from one seed, by hypothesis, which shrinks the one that fails."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
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

    def play_one(history: History) -> None:
        figures["histories"] += 1
        figures[f"histories of Hive {history.table.hive_version}"] += 1
        figures.update(_play(history))

    try:
        _each_history(number, count, (Phase.generate, Phase.shrink), play_one)
    except HistoryError as error:
        raise HistoryError(f"seed {number}: {error}") from error
    return figures


def play_seeds(numbers: Sequence[int]) -> Iterator[tuple[int, Counter[str]]]:
    """Play the histories of several seeds, in two processes.

    :returns: each seed with its figures, as they end.
    :raises HistoryError: as :func:`play_seed` does; no other seed is begun then.
    """
    processes = min(2, os.cpu_count() or 1)
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        playing = {pool.submit(play_seed, number): number for number in numbers}
        try:
            for future in as_completed(playing):
                yield playing[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def first_failure(number: int, most: int) -> int | None:
    """Which history of a seed is the first that fails, counted from 1; None where none of ``most`` does."""
    played = 0
    failed: list[int] = []

    def play_one(history: History) -> None:
        nonlocal played
        played += 1
        try:
            _play(history)
        except HistoryError:
            failed.append(played)
            raise

    try:
        _each_history(number, most, (Phase.generate,), play_one)
    except HistoryError:
        return failed[0]
    return None


def _play(history: History) -> Counter[str]:
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        return play(history, Path(folder))


def _each_history(number: int, count: int, phases: tuple[Phase, ...], play_one: Callable[[History], None]) -> None:
    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=phases,
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(histories)
    def play_it(history: History) -> None:
        play_one(history)

    play_it()
