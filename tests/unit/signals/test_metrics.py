"""The list of metrics: names that every backend takes, each in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airflow_provider_acid.signals.metrics import METRICS, PREFIX, Metric

OBSERVABILITY = Path(__file__).parents[3] / "docs" / "observability.md"
LONGEST_OF_OPENTELEMETRY = 63
"""Of OpenTelemetry's first specification, which Airflow 2 keeps to; newer ones allow 255."""


def documented_line(metric: Metric) -> str:
    hives = f"`{metric.hive_name}`" if metric.hive_name else "-"
    return f"| `{metric.name}` | {metric.kind.value} | {metric.meaning} | {hives} |"


def test_the_documentations_table_is_the_list() -> None:
    lines = OBSERVABILITY.read_text().splitlines()
    start = lines.index("| name | kind | meaning | Hive 4's name |")
    table = lines[start + 2 : lines.index("", start)]
    assert table == [documented_line(metric) for metric in METRICS]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_backend_takes_the_name(metric: Metric) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.name)
    assert len(f"airflow.{PREFIX}{metric.name}") <= LONGEST_OF_OPENTELEMETRY


def test_a_name_means_one_thing() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
