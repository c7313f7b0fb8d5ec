"""``./benchmark`` works: all works in sizes that say nothing, so that its ratios are only loosely bounded."""

from __future__ import annotations

import io
import json
import math
import subprocess
import xml.etree.ElementTree as ElementTree
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import Servers, main
from benchmarks.measured import MEANINGS
from benchmarks.other_sides import HiveSide
from benchmarks.stores import on_s3, on_webhdfs
from tests.harness.hdfs_server import HdfsServer
from tests.harness.hive_engine import HiveEngine
from tests.harness.metastore_server import MetastoreServer
from tests.harness.s3_server import S3Server

REPOSITORY = Path(__file__).parents[2]
SIDES = {
    "project",
    "Hive 3.1.3",
    "Hive 4.0.1, 2 workers",
    "Hive 4.0.1, 20 workers",
    "copy",
    "evaluation",
    "evaluation, written",
    "fetching + listing",
    "by_hive",
    "by_project",
    "metastore",
    "database",
}


@dataclass(frozen=True)
class Finished:
    """A run that has ended.

    :param printed: its standard output.
    :param found: its JSON file.
    :param plot: its plot's file.
    """

    printed: str
    found: dict[str, Any]
    plot: Path


@pytest.fixture(scope="module")
def finished(
    tmp_path_factory: pytest.TempPathFactory,
    hive_3_engine: HiveEngine,
    hive_4_metastore_on_postgres: MetastoreServer,
    hdfs: HdfsServer,
    s3: S3Server,
) -> Finished:
    """A run with the servers that other tests use, too."""
    folder = tmp_path_factory.mktemp("benchmark")
    found, plot = folder / "found.json", folder / "plot.svg"
    servers = Servers(
        lambda _: nullcontext(HiveSide(hive_3_engine)),
        lambda _: nullcontext(hive_4_metastore_on_postgres),
        {"webhdfs": lambda: nullcontext(on_webhdfs(hdfs)), "s3": lambda: nullcontext(on_s3(s3))},
    )
    printed = io.StringIO()
    with redirect_stdout(printed), pytest.MonkeyPatch.context() as own_key:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            own_key.setenv(name, "")
        assert main(["--tiny", "--json", str(found), "--plot", str(plot)], servers) == 0
    document = json.loads(found.read_text())
    assert isinstance(document, dict)
    return Finished(printed.getvalue(), document, plot)


def test_every_ratio_is_measured_and_of_a_sane_size(finished: Finished) -> None:
    keys = finished.found["keys"]
    assert keys.keys() == MEANINGS.keys()
    # Of two partitions, starting Spark takes nearly all of the time: seconds each.
    sizes = {key: ratio["value"] / (1000 if key.endswith("_ms") else 1) for key, ratio in keys.items()}
    assert {key: size for key, size in sizes.items() if not 0.001 < size < 1000} == {}


def test_every_side_did_its_work(finished: Finished) -> None:
    assert {measured["side"] for measured in finished.found["measured"]} == SIDES
    for measured in finished.found["measured"]:
        assert all(cost["seconds"] > 0 and cost["cpu_seconds"] >= 0 for cost in measured["costs"]), measured


@pytest.mark.parametrize(("side", "partitions"), [("evaluation", 50), ("evaluation, written", 1)])
def test_an_evaluation_makes_few_calls_and_lists_each_partition_once(
    finished: Finished, side: str, partitions: int
) -> None:
    measured = finished.found["measured"]
    (evaluated,) = [one for one in measured if one["work"] == "50 partitions" and one["side"] == side]
    assert evaluated["list_calls"] == partitions
    # With three of Hive 4's settings, which are looked at at every start: two of its threads, and whether it has pools.
    assert evaluated["metastore_calls"] <= math.ceil(partitions / 1000) + 13


@pytest.mark.parametrize(("work", "calls", "storage_calls"), [("chain", 15, 22), ("cleaning", 4, 14)])
def test_five_times_as_many_small_partitions_make_no_more_calls_for_each(
    finished: Finished, work: str, calls: int, storage_calls: int
) -> None:
    """So many that they are begun in groups, and cleaned by two at once."""
    few, more = (
        next(
            one
            for one in finished.found["measured"]
            if one["work"] == f"{work}, {count} small partitions" and one["side"] == "project"
        )
        for count in (8, 40)
    )
    assert more["metastore_calls"] - few["metastore_calls"] <= 32 * calls
    assert more["storage_calls"] - few["storage_calls"] <= 32 * storage_calls


@pytest.mark.parametrize("store", ["webhdfs", "s3"])
def test_the_chain_on_a_store_is_compacted_and_cleaned_there(finished: Finished, store: str) -> None:
    found = {one["work"]: one for one in finished.found["measured"] if one["side"] == "project"}
    for work in ("chain", "cleaning"):
        assert found[f"{work}, 4 small partitions on {store}"]["storage_calls"] > 0


def test_an_operator_whose_metastore_is_slow_makes_no_more_calls(finished: Finished) -> None:
    (simulated,) = [one for one in finished.found["measured"] if one["work"] == "chain, 40 small partitions, simulated"]
    assert simulated["metastore_calls"] <= 40 * 15


def test_a_table_is_printed_and_a_plot_drawn(finished: Finished) -> None:
    assert [key for key in MEANINGS if f"(`{key}`)" not in finished.printed] == []
    bars = ElementTree.parse(finished.plot).getroot().findall("{http://www.w3.org/2000/svg}rect")
    assert len(bars) == 1 + len(MEANINGS)


def test_the_command_starts_the_benchmark_and_says_which_works_there_are() -> None:
    done = subprocess.run([str(REPOSITORY / "benchmark"), "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [key for key in MEANINGS if key not in done.stdout] == []
