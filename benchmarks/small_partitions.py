"""Many small partitions: one application of this project, its start included, beside Hive's Worker."""

from __future__ import annotations

import shutil
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_acid.acid.sealing import RunKey
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.run.run_place import RunPlace
from airflow_provider_acid.exceptions import AcidError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.result import CompactionResult
from benchmarks.acid_tables import Shape, write_table
from benchmarks.measured import Findings, Measured, ratio
from benchmarks.metering import Meter, this_process
from benchmarks.other_sides import HIVE_POLL_MS, HiveSide
from benchmarks.project_side import plan_for
from benchmarks.rounds import Say
from benchmarks.spark_places import SparkPlace

_SHAPE = Shape(rows=3000, touched=1.0)
_WORK = "small partitions"
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class SmallPartitions:
    """How many there are.

    :param by_hive: how many of them Hive compacts; one worker takes one after the other, so that all take as much more.
    :param hive_poll_ms: how often Hive's Worker asks whether its job has ended.
    """

    partitions: int
    by_hive: int
    hive_poll_ms: int = HIVE_POLL_MS


def measure_small_partitions(
    hive: HiveSide, spark: SparkPlace, folder: Path, small: SmallPartitions, say: Say
) -> Findings:
    """Compact all of them in one application, and some by Hive's job with the Worker's own polling."""
    write_table(_SHAPE, folder / "model")
    places = [folder / f"p={number}" for number in range(small.partitions)]
    for place in places:
        shutil.copytree(folder / "model", place)
    ours, theirs = Meter(lambda: [*this_process(), *spark.processes()]), hive.meter()
    say(f"{_WORK}: warm-up, {hive.name}")
    _by_hive(hive, folder / "model", hive.meter())
    say(f"{_WORK}: project")
    _run_application(spark, folder, places, ours)
    say(f"{_WORK}: {hive.name}")
    with theirs.running():
        for place in places[: small.by_hive]:
            _by_hive(hive, place, hive.meter(), small.hive_poll_ms)
    one_application = Measured(f"{small.partitions} {_WORK}", "project", tuple(ours.costs))
    one_worker = Measured(f"{small.by_hive} of {small.partitions} {_WORK}", hive.name, tuple(theirs.costs))
    return Findings(
        (one_application, one_worker),
        (ratio("hive_vs_small100", one_worker, one_application, small.partitions / small.by_hive),),
        (f"{_WORK}: {small.partitions}; {hive.name} compacted {small.by_hive}, all are taken to need as much more",),
    )


def _by_hive(hive: HiveSide, place: Path, meter: Meter, *poll_ms: int) -> None:
    made = hive.compact(place, _SHAPE, CompactionType.MAJOR, meter, *poll_ms)
    shutil.rmtree(made)


def _run_application(spark: SparkPlace, folder: Path, places: list[Path], meter: Meter) -> None:
    """One application for all; what it makes is removed afterwards."""
    key = RunKey.new(uuid.uuid4().hex)
    run = RunDirectory(Storages(), RunPlace.in_directory(str(folder)), key)
    for index, place in enumerate(places):
        run.put_plan(index, plan_for(place, _SHAPE, CompactionType.MAJOR))
    run.beat()
    results: dict[int, CompactionResult | AcidError] = {}
    with meter.running(), ThreadPoolExecutor(1) as operator:
        collected = operator.submit(_collect, run, len(places), results)
        spark.submit(run, folder)
        collected.result()
    errors = [
        result if isinstance(result, AcidError) else result.error
        for result in results.values()
        if isinstance(result, AcidError) or result.error is not None
    ]
    if errors or len(results) != len(places):
        raise RuntimeError(f"{len(results)} of {len(places)} results; {errors[:1]}")
    run.remove()
    for place in places:
        for made in place.glob("_acid_compaction_*"):
            shutil.rmtree(made)


def _collect(run: RunDirectory, count: int, results: dict[int, CompactionResult | AcidError]) -> None:
    """Be the operator until everything is answered."""
    deadline_seconds = time.monotonic() + run.idle_timeout_seconds
    while len(results) < count and time.monotonic() < deadline_seconds:
        results.update(run.poll()[0])
        time.sleep(_POLL_SECONDS)
    run.put_end()
