"""What people see: live on a terminal, few plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from airflow_provider_acid.compaction.quantities import human_bytes
from tests.harness.quickstart.demo_tables import DemoTable
from tests.harness.quickstart.run_watch import CompactionStage, PartitionProgress
from tests.harness.quickstart.table_state import PartitionState

PLAIN_WIDTH = 118
BAR_WIDTH = 12
_LARGE_BYTES = 1 << 20
"""Without a terminal only partitions from this size on get lines of their own."""

_TOLD_STAGES = (CompactionStage.PLANNED, CompactionStage.MERGING, CompactionStage.COMPACTED, CompactionStage.CLEANED)
_LINES_AROUND_THE_LIST = 8
_COLOURS = {
    CompactionStage.PLANNED: "yellow",
    CompactionStage.MERGING: "cyan",
    CompactionStage.MERGED: "cyan",
    CompactionStage.COMPACTED: "green",
}


class Display:
    """Writes to standard output."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        if not self.console.is_terminal:
            self.console = Console(highlight=False, width=PLAIN_WIDTH)
        self._live: Live | None = None
        self._told: dict[str, CompactionStage] = {}

    def say(self, text: str) -> None:
        """One line."""
        self.console.print(text, markup=False, soft_wrap=True)

    def progress(self, partitions: Sequence[PartitionProgress], seconds: float) -> None:
        """Shows how far every partition is."""
        if self.console.is_terminal:
            self._show_live(partitions, seconds)
        else:
            self._tell_changes(partitions)

    def end_progress(self) -> None:
        """Leaves the last picture standing."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def outcome(
        self, tables: Sequence[DemoTable], before: Sequence[PartitionState], after: Sequence[PartitionState]
    ) -> None:
        """A table of what each partition gained; on a narrow terminal without who wrote it, and checksums in short."""
        wide = self.console.width >= PLAIN_WIDTH
        writers = {table.name: table.writer for table in tables}
        shown = Table(box=None, pad_edge=False, collapse_padding=True)
        shown.add_column("partition", no_wrap=True)
        if wide:
            shown.add_column("written by", no_wrap=True)
        shown.add_column("directories", justify="right", no_wrap=True)
        shown.add_column("", no_wrap=True)
        for title in ("bytes", "rows", "row checksum"):
            shown.add_column(title, justify="right", no_wrap=True)
        for old, new in zip(before, after, strict=True):
            shown.add_row(
                old.table if old.partition is None else f"{old.table}/{old.partition}",
                *([writers[old.table]] if wide else []),
                f"{old.directories} → {new.directories}",
                _gain(old, new),
                f"{human_bytes(old.size_bytes)} → {human_bytes(new.size_bytes)}",
                _rows(old, new),
                _checksum(old, new, wide=wide),
            )
        self.console.print(shown)

    def _show_live(self, partitions: Sequence[PartitionProgress], seconds: float) -> None:
        if self._live is None:
            self._live = Live(console=self.console, refresh_per_second=4)
            self._live.start()
        self._live.update(self._picture(partitions, seconds))

    def _picture(self, partitions: Sequence[PartitionProgress], seconds: float) -> RenderableType:
        at_work = [partition for partition in partitions if partition.stage is not CompactionStage.UNTOUCHED]
        finished = sum(partition.stage in (CompactionStage.COMPACTED, CompactionStage.CLEANED) for partition in at_work)
        head = Text(f"{seconds:4.0f} s  {len(at_work)} partitions begun, {finished} compacted")
        order = list(CompactionStage)
        by_urgency = sorted(at_work, key=lambda partition: (order.index(partition.stage), -partition.bytes_total))
        shown = Table(box=None, pad_edge=False, show_header=False)
        for _ in range(5):
            shown.add_column(no_wrap=True)
        room = max(self.console.height - _LINES_AROUND_THE_LIST, 3)
        for partition in by_urgency[:room]:
            shown.add_row(*_live_cells(partition))
        more = len(by_urgency) - room
        return Group(head, shown, *([Text(f"and {more} more")] if more > 0 else []))

    def _tell_changes(self, partitions: Sequence[PartitionProgress]) -> None:
        for partition in partitions:
            to_tell = partition.bytes_total >= _LARGE_BYTES and partition.stage in _TOLD_STAGES
            if to_tell and partition.stage is not self._told.get(partition.label):
                self._told[partition.label] = partition.stage
                size = human_bytes(partition.bytes_total)
                self.say(f"  {partition.label}: {partition.stage.value}, {size}{_rate(partition)}")


def _live_cells(partition: PartitionProgress) -> tuple[RenderableType, ...]:
    total = max(partition.bytes_total, 1)
    return (
        Text(partition.label),
        Text(partition.stage.value, style=_COLOURS.get(partition.stage, "green")),
        ProgressBar(total=total, completed=min(partition.bytes_done, total), width=20),
        Text(f"{human_bytes(partition.bytes_done)} of {human_bytes(partition.bytes_total)}"),
        Text(_rate(partition).removeprefix(", ")),
    )


def _rate(partition: PartitionProgress) -> str:
    speed = partition.bytes_per_second
    return "" if speed is None else f", {human_bytes(speed)}/s"


def _gain(old: PartitionState, new: PartitionState) -> Text:
    """The share of directories that readers no longer have to open."""
    share = 1 - new.directories / old.directories if old.directories else 0.0
    filled = round(share * BAR_WIDTH)
    return Text.assemble(("█" * filled, "green"), ("░" * (BAR_WIDTH - filled), "dim"))


def _rows(old: PartitionState, new: PartitionState) -> str:
    if old.rows is None or new.rows is None:
        return "not read"
    return f"{new.rows:,}" if old.rows == new.rows else f"{old.rows:,} → {new.rows:,}"


def _checksum(old: PartitionState, new: PartitionState, *, wide: bool) -> str:
    if old.rows is None or new.rows is None:
        return ""
    if old.checksum != new.checksum:
        return f"{old.checksum:016x} → {new.checksum:016x}"
    return f"{new.checksum:016x} same" if wide else "same"
