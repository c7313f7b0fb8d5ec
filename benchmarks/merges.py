"""The same table compacted by each side, in turns."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from airflow_provider_acid.plan.plan import CompactionType
from benchmarks.acid_tables import Shape, write_table
from benchmarks.measured import Findings, Measured, ratio
from benchmarks.metering import Meter
from benchmarks.rounds import Rounds, Say


class Side(Protocol):
    """Somebody who compacts."""

    @property
    def name(self) -> str:
        """As it is called in the results."""

    def meter(self) -> Meter:
        """A meter of its processes."""

    def compact(self, folder: Path, shape: Shape, type: CompactionType, meter: Meter) -> Path:
        """Compact the table and change none of its directories; the directory of the result."""


@dataclass(frozen=True)
class Merge:
    """A work.

    :param keys: keys of the results, each with the sides whose times make its ratio.
    """

    name: str
    type: CompactionType
    shape: Shape
    keys: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def measure_merge(merge: Merge, sides: Sequence[Side], folder: Path, rounds: Rounds, say: Say) -> Findings:
    """Make the table, and let each side compact it once per round; then remove it."""
    say(f"{merge.name}: making {merge.shape.rows:,} rows")
    table = folder / "table"
    write_table(merge.shape, table)
    size_bytes = sum(file.stat().st_size for file in table.glob("*/*"))
    meters = {side.name: side.meter() for side in sides}
    try:
        for round_name in rounds.names():
            for side in sides:
                say(f"{merge.name}: {round_name}, {side.name}")
                before = set(table.iterdir())
                side.compact(table, merge.shape, merge.type, meters[side.name])
                for made in set(table.iterdir()) - before:
                    shutil.rmtree(made)
    finally:
        shutil.rmtree(table)
    measured = {name: Measured(merge.name, name, rounds.counted(meter)) for name, meter in meters.items()}
    return Findings(
        tuple(measured.values()),
        tuple(ratio(key, measured[one], measured[other]) for key, (one, other) in merge.keys.items()),
        (f"{merge.name}: {merge.shape.rows:,} rows, {size_bytes / 1e6:,.1f} MB, {merge.shape.files} files per delta",),
    )
