"""How often something is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.metering import Cost, Meter

Say = Callable[[str], None]
"""Tells the user how far it is."""


@dataclass(frozen=True)
class Rounds:
    """Rounds in which all sides do the same work in turns.

    :param measured: that count.
    :param warm_ups: before them, that do not.
    """

    measured: int
    warm_ups: int = 1

    def names(self) -> Iterator[str]:
        """What to call each."""
        for number in range(1 - self.warm_ups, self.measured + 1):
            yield f"round {number}" if number > 0 else "warm-up"

    def counted(self, meter: Meter) -> tuple[Cost, ...]:
        """What a meter that ran in every round says of those that count."""
        return tuple(meter.costs[self.warm_ups :])
