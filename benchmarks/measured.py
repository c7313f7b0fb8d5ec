"""What was measured, the ratios that follow, and what they are to reach."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from statistics import median

from benchmarks.metering import Cost

_TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Measured:
    """One side's rounds of one work.

    :param metastore_calls: None where no metastore has a part in it.
    :param list_calls: listings of directories, likewise.
    :param storage_calls: of this process alone, tasks' not included; likewise.
    """

    work: str
    side: str
    costs: tuple[Cost, ...]
    metastore_calls: int | None = None
    list_calls: int | None = None
    storage_calls: int | None = None


@dataclass(frozen=True)
class Ratio:
    """One key of the results: a ratio of two sides in the same round, or a figure of one.

    :param goal: what it is to reach.
    :param at_least: whether more is better; else less is.
    :param rounds: of the times by the clock.
    :param cpu_rounds: of the processor times, which depend less on what else the machine does.
    """

    key: str
    meaning: str
    goal: float
    at_least: bool
    rounds: tuple[float, ...]
    cpu_rounds: tuple[float, ...]

    @property
    def value(self) -> float:
        """The median of the rounds."""
        return median(self.rounds)

    @property
    def is_met(self) -> bool:
        """Whether the median reaches the goal."""
        return self.value >= self.goal if self.at_least else self.value <= self.goal


@dataclass(frozen=True)
class Findings:
    """What some works came to.

    :param notes: figures that no ratio is made of, each a sentence.
    """

    measured: tuple[Measured, ...] = ()
    ratios: tuple[Ratio, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def __add__(self, other: Findings) -> Findings:
        return Findings(self.measured + other.measured, self.ratios + other.ratios, self.notes + other.notes)


MEANINGS = {
    "minor_vs_copy": ("minor, no row changes, 16 bytes a row ÷ plain copy of the bytes", 2.5, False),
    "minor60_vs_copy": ("minor, no row changes, store_sales, 60 bytes a row ÷ plain copy", 1.5, False),
    "minor200_vs_copy": ("minor, no row changes, web_sales, 200 bytes a row ÷ plain copy", 1.5, False),
    "hive_vs_minor": ("Hive's job ÷ minor, no row changes", 10.0, True),
    "hive_vs_major10": ("Hive's job ÷ major, deletes in 10 % of the stripes", 5.0, True),
    "hive_vs_major100": ("Hive's job ÷ major, deletes in every stripe", 2.0, True),
    "hive_vs_small100": ("Hive's compactor, one worker ÷ one application, small partitions", 10.0, True),
    "evaluate_vs_listing": ("evaluation ÷ (listing + fetching partitions)", 1.3, False),
    "chain_small_per_second": ("small partitions a second, from claim to commit", 20.0, True),
    "chain_small_cpu_ms": ("processor time of one, ms, the metastore's and its database's included", 80.0, False),
    "chain_small_growth": ("rate of five times as many ÷ rate", 0.9, True),
    "chain_small_hdfs_per_second": ("the same on HDFS, by WebHDFS", 20.0, True),
    "chain_small_s3_per_second": ("the same on S3", 20.0, True),
    "chain_small_vs_hive2": ("small partitions a second ÷ Hive 4.0.1's, 2 workers", 50.0, True),
    "chain_small_vs_hive20": ("small partitions a second ÷ Hive 4.0.1's, 20 workers", 5.0, True),
    "chain_simulated_per_second": ("small partitions a second by one operator, calls of 5 ms, 256 slots", 100.0, True),
    "clean_small_per_second": ("small partitions a second, cleaned", 200.0, True),
    "read_vs_hive_result": ("Hive reading our major's result ÷ reading its own", 1.0, False),
}
"""By key: what the ratio means, its goal, and whether more is better."""


def figure(key: str, value: float) -> Ratio:
    """A key's figure that is no ratio of two sides, measured once."""
    meaning, goal, at_least = MEANINGS[key]
    return Ratio(key, meaning, goal, at_least, (value,), (value,))


def ratio(key: str, one: Measured, other: Measured, factor: float = 1.0) -> Ratio:
    """A key's ratio, round by round.

    :param factor: how many times what was measured of ``one`` its whole work takes.
    """
    meaning, goal, at_least = MEANINGS[key]
    pairs = list(zip(one.costs, other.costs, strict=True))
    by_clock = tuple(factor * this.seconds / that.seconds for this, that in pairs)
    # Small works take less processor time than the kernel counts.
    by_processor = tuple(factor * this.cpu_seconds / (that.cpu_seconds or _TICK_SECONDS) for this, that in pairs)
    return Ratio(key, meaning, goal, at_least, by_clock, by_processor)
