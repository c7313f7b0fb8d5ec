"""Aligned tables for logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LINES = 50
"""Lines of one table at most: a sweep over thousands of partitions must not fill the log."""


def text_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Iterable[int] = ()
) -> list[str]:
    """A title with the number of rows, the header and at most :data:`LINES` rows, in columns.

    :param right: columns whose cells are put to the right, as numbers are.
    """
    if not rows:
        return [f"{title}: nothing"]
    shown = [header, *rows[:LINES]]
    to_the_right = frozenset(right)
    widths = [max(len(row[column]) for row in shown) for column in range(len(header) - 1)]
    lines = [f"{title}: {len(rows)}", *(_line(row, widths, to_the_right) for row in shown)]
    return lines if len(rows) <= LINES else [*lines, f"... and {len(rows) - LINES} more"]


def _line(cells: Sequence[str], widths: Sequence[int], to_the_right: frozenset[int]) -> str:
    padded = [
        cell.rjust(width) if column in to_the_right else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=False))
    ]
    return "  " + "  ".join([*padded, cells[-1]])
