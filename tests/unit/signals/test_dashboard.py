"""The Grafana dashboard shows metrics that are sent, by the names that Prometheus gets, and each in the right way."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.signals.metrics import METRICS, Kind

FILE = Path(__file__).parents[3] / "docs" / "grafana" / "hive-acid.json"
BOARD: dict[str, Any] = json.loads(FILE.read_text())
QUERIES = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
KINDS = {f"airflow_hive_acid_{metric.name}": metric.kind for metric in METRICS}
SELECTOR = re.compile(r'\{__name__=~"(\w+)\(_total\)\?", dag_id=~"\$dag"\}')


def test_every_metric_of_the_dashboard_is_sent() -> None:
    used = {name for query in QUERIES for name in SELECTOR.findall(query)}
    assert used - KINDS.keys() == set()
    assert len(used) > 25


@pytest.mark.parametrize("query", QUERIES)
def test_counters_are_shown_by_their_growth_and_gauges_as_they_are(query: str) -> None:
    (name,) = SELECTOR.findall(query)
    assert (KINDS[name] is Kind.COUNTER) is bool(re.search(r"\b(increase|rate)\(", query))


def test_panels_have_numbers_of_their_own_and_do_not_overlap() -> None:
    panels = BOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
