"""``./benchmark --cluster`` works, in sizes that say nothing."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from benchmarks.__main__ import Servers, main
from benchmarks.other_sides import HiveSide
from tests.harness.hive_engine import HiveEngine


@pytest.mark.xdist_group("benchmark")
def test_this_projects_side_runs_on_a_cluster(hive_3_engine: HiveEngine, tmp_path: Path) -> None:
    found, plot = tmp_path / "found.json", tmp_path / "plot.svg"
    keys = ["minor_vs_copy", "hive_vs_small100"]
    servers = Servers(lambda _: nullcontext(HiveSide(hive_3_engine)))
    files = ["--json", str(found), "--plot", str(plot)]
    assert main(["--tiny", "--cluster", "--only", *keys, *files], servers) == 0
    sides = [(measured["work"], measured["side"]) for measured in json.loads(found.read_text())["measured"]]
    assert {("minor", "project"), ("2 small partitions", "project")} <= set(sides)
