"""Findings as a table to read, as JSON, and as a picture."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from html import escape
from statistics import median

from benchmarks.measured import Findings, Measured, Ratio

_MEGABYTE = 1_000_000
_WIDTH, _ROW, _LEFT, _RIGHT, _TOP = 900, 26, 440, 130, 40
_MET, _MISSED = "#2e8b57", "#c0504d"


def as_text(findings: Findings) -> Iterator[str]:
    """Tables in Markdown; of each figure the median of the rounds, of ratios also the lowest and the highest."""
    yield "| work | side | s | CPU s | peak MB | read MB | written MB | metastore calls | list calls | storage calls |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for measured in findings.measured:
        yield f"| {' | '.join(_cells(measured))} |"
    yield ""
    yield "| key | ratio | lowest–highest | of CPU s | goal | met |"
    yield "|---|--:|--:|--:|--:|---|"
    for ratio in findings.ratios:
        yield (
            f"| {ratio.meaning} (`{ratio.key}`) | {ratio.value:.2f} | {min(ratio.rounds):.2f}–{max(ratio.rounds):.2f} "
            f"| {median(ratio.cpu_rounds):.2f} | {_goal(ratio)} | {'yes' if ratio.is_met else 'no'} |"
        )
    yield ""
    yield from (f"- {note}" for note in findings.notes)


def as_json(findings: Findings) -> str:
    """Everything, with every round."""
    document = {
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()},
        "keys": {ratio.key: {**asdict(ratio), "value": ratio.value, "met": ratio.is_met} for ratio in findings.ratios},
        "measured": [asdict(measured) for measured in findings.measured],
        "notes": findings.notes,
    }
    return json.dumps(document, indent=2) + "\n"


def as_picture(findings: Findings) -> str:
    """An SVG: for each ratio how many times better or worse than its goal it is, on a logarithmic scale."""
    ratios = findings.ratios
    scores = [ratio.value / ratio.goal if ratio.at_least else ratio.goal / ratio.value for ratio in ratios]
    height = _TOP + _ROW * len(ratios) + 20
    widest = max((abs(math.log2(score)) for score in scores), default=1.0) or 1.0
    middle, reach = (_LEFT + _WIDTH - _RIGHT) / 2, (_WIDTH - _RIGHT - _LEFT) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        'font-size="13">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{middle}" y="20" text-anchor="middle">worse than the goal | better than the goal</text>',
    ]
    for place, (ratio, score) in enumerate(zip(ratios, scores, strict=True)):
        parts += _bar(ratio, middle, reach * math.log2(score) / widest, _TOP + _ROW * place)
    parts.append(f'<path d="M{middle} {_TOP - 8}V{height - 12}" stroke="#333333"/>')
    return "\n".join([*parts, "</svg>", ""])


def _bar(ratio: Ratio, middle: float, length: float, top: int) -> list[str]:
    start, color = min(middle, middle + length), _MET if ratio.is_met else _MISSED
    return [
        f'<text x="10" y="{top + 14}">{escape(ratio.meaning)}</text>',
        f'<rect x="{start:.1f}" y="{top}" width="{abs(length):.1f}" height="{_ROW - 8}" fill="{color}"/>',
        f'<text x="{_WIDTH - _RIGHT + 10}" y="{top + 14}">{ratio.value:.2f} ({_goal(ratio)})</text>',
    ]


def _goal(ratio: Ratio) -> str:
    return f"{'≥' if ratio.at_least else '≤'} {ratio.goal:g}"


def _cells(measured: Measured) -> Sequence[str]:
    costs = measured.costs
    return [
        measured.work,
        measured.side,
        f"{median(cost.seconds for cost in costs):.2f}",
        f"{median(cost.cpu_seconds for cost in costs):.2f}",
        f"{median(cost.peak_bytes for cost in costs) / _MEGABYTE:.0f}",
        f"{median(cost.read_bytes for cost in costs) / _MEGABYTE:.1f}",
        f"{median(cost.written_bytes for cost in costs) / _MEGABYTE:.1f}",
        "" if measured.metastore_calls is None else str(measured.metastore_calls),
        "" if measured.list_calls is None else str(measured.list_calls),
        "" if measured.storage_calls is None else str(measured.storage_calls),
    ]
