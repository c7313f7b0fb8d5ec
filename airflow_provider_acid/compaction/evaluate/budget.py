"""How much one run takes of what is due, and what it leaves to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_acid.exceptions import ConfigurationError


@dataclass(frozen=True)
class RunBudget:
    """Most that one run takes.

    :param partitions: most partitions.
    :param input_bytes: most bytes that the compactions read together; None for no bound.
    :raises ConfigurationError: one of them is not positive.
    """

    partitions: int
    input_bytes: int | None = None

    @classmethod
    def of(cls, partitions: int, gib: float | None = None) -> RunBudget:
        """The budget with bytes as people count them."""
        return cls(partitions, None if gib is None else int(gib * 2**30))

    def __post_init__(self) -> None:
        for name, value in (("partitions", self.partitions), ("bytes", self.input_bytes)):
            if value is not None and value < 1:
                raise ConfigurationError(
                    f"budget of a run: {name}", f"is {value}", "give a number from 1 on, or none for no bound"
                )

    def takes(self, input_bytes: Sequence[int]) -> int:
        """How many of the partitions are taken, from the first on.

        What comes first is the worst, so nothing is taken before it: a partition that does not fit ends the run's
        share, and is the first of the next run's. The first with any bytes is taken although it is larger than the
        budget, or it would never be compacted.

        :param input_bytes: what each partition's compaction reads, worst partition first.
        """
        total = 0
        for index, size in enumerate(input_bytes[: self.partitions]):
            total += size
            if self.input_bytes is not None and total > max(self.input_bytes, size):
                return index
        return min(len(input_bytes), self.partitions)
