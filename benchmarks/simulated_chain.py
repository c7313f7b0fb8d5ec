"""The operator's share of the chain alone, at more partitions and task slots than a machine has.

Operator, run directory and files are real. The metastore grants everything, and takes its time for each call; the
Spark application is a process that hands in a result it has made before, by links to its file.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.names import marker_files
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.merge.app.driver_run import DriverRun
from airflow_provider_acid.plan.exchange import OUTPUTS_DIRECTORY, RESULT_FILE
from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.storages.local import LocalStorage
from benchmarks.acid_tables import write_table
from benchmarks.measured import Findings, Measured, figure
from benchmarks.metering import Meter, this_process
from benchmarks.rounds import Say
from benchmarks.simulated_metastore import DATABASE, TABLE, SimulatedMetastore
from benchmarks.small_chain import SMALL, compact_as_operator, partition_names
from tests.harness.plain_job import run_plainly

CALL_SECONDS = 0.005
"""How long each call of the metastore takes."""

SLOTS = 256
"""Of the application that is simulated; the operator has twice as many partitions in work."""

_LINKS = 10_000
"""So many names a file has at most; file systems have limits (ext4: 65,000)."""

_LOOK_SECONDS = 0.02
_HANDING_THREADS = 16
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class _Made:
    """What was merged once, to be handed in again and again.

    :param result: of the plan that it was merged for.
    :param file: what was written.
    """

    result: CompactionResult
    file: Path


def measure_simulated_chain(folder: Path, partitions: int, say: Say) -> Findings:
    """Compact so many small partitions by one operator."""
    work = f"chain, {partitions:,} small partitions, simulated"
    say(f"{work}: making them")
    (folder / "runs").mkdir(parents=True)
    entities = _make_partitions(folder, partitions)
    metastore = SimulatedMetastore(f"file:{_table(folder)}", SMALL.write_ids, CALL_SECONDS)
    settings = CompactionSettings(run_directory=str(folder / "runs"))
    meter = Meter(this_process)
    say(f"{work}: compacting")
    with meter.running():
        outcomes = compact_as_operator(
            metastore.client, settings, entities, partial(_in_another_process, folder / "made"), max_active=2 * SLOTS
        )
    wrong = [outcome for outcome in outcomes if outcome.state is not OutcomeState.COMPACTED]
    if wrong or len(outcomes) != partitions:
        raise RuntimeError(f"{len(wrong)} of {len(outcomes)}: {wrong[:1]}")
    xcom_bytes = len(json.dumps([outcome.to_json() for outcome in outcomes])) // partitions
    return Findings(
        (Measured(work, "project", tuple(meter.costs), metastore.calls.total()),),
        (figure("chain_simulated_per_second", partitions / meter.costs[0].seconds),),
        (f"{work}: {xcom_bytes} bytes of XCom each",),
    )


def _table(folder: Path) -> Path:
    return folder / "warehouse" / f"{DATABASE}.db" / TABLE


def _make_partitions(folder: Path, partitions: int) -> list[Entity]:
    """Links to the files of one, which are the same in all."""
    write_table(SMALL, folder / "model")
    paths = [file.relative_to(folder / "model") for file in (folder / "model").glob("*/*")]
    names = partition_names(partitions)
    for number, name in enumerate(names):
        model = folder / f"model.{number // _LINKS}"
        if not model.exists():
            shutil.copytree(folder / "model", model)
        for path in paths:
            place = _table(folder) / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            os.link(model / path, place)
    return [Entity(DATABASE, TABLE, name) for name in names]


def _in_another_process(made: Path, run: RunDirectory) -> None:
    application = multiprocessing.get_context("spawn").Process(
        target=_be_the_application, args=(run.location, run.key.secret, made)
    )
    application.start()
    application.join()


def _be_the_application(location: str, secret: bytes, made: Path) -> None:
    """Hand in results until the operator says that it is over."""
    run = DriverRun(LocalStorage(location), secret)
    first: _Made | None = None
    given: set[int] = set()
    handed: deque[Future[None]] = deque()
    last_news = time.monotonic()
    with ThreadPoolExecutor(_HANDING_THREADS) as threads:
        while time.monotonic() < last_news + _PATIENCE_SECONDS:
            seen = run.look()
            while handed and handed[0].done():
                handed.popleft().result()
            if seen.ended:
                return
            for item in seen.plans - seen.results - given:
                given.add(item)
                plan = run.plan(item)
                first = first or _merge(plan, made)
                file = made.with_suffix(f".{item // _LINKS}")
                if not file.exists():
                    shutil.copyfile(first.file, file)
                handed.append(threads.submit(_hand_in, run, item, plan, replace(first, file=file)))
                last_news = time.monotonic()
            time.sleep(_LOOK_SECONDS)


def _merge(plan: CompactionPlan, made: Path) -> _Made:
    """What the application does, with its output taken away."""
    result = run_plainly(plan)
    folder = Path(plan.location.removeprefix("file:"))
    (written,) = result.files
    os.rename(folder / plan.staged(written.output) / (written.name or ""), made)
    shutil.rmtree(folder / plan.staging / OUTPUTS_DIRECTORY)
    (folder / plan.staging / RESULT_FILE).unlink()
    return _Made(result, made)


def _hand_in(run: DriverRun, item: int, plan: CompactionPlan, made: _Made) -> None:
    """What it leaves behind, without the cost of a task's own looks, which have other machines' processors."""
    result = replace(made.result, attempt=plan.attempt, plan_digest=plan.digest, entity=plan.entity)
    folder = Path(plan.location.removeprefix("file:"))
    (written,) = result.files
    (output,) = plan.outputs
    staged = folder / plan.staged(output.kind)
    staged.mkdir(parents=True, exist_ok=True)
    os.link(made.file, staged / (written.name or ""))
    for name, content in marker_files(output.target).items():
        (staged / name).write_bytes(content)
    (folder / plan.staging / RESULT_FILE).write_text(result.to_json())
    run.write_result(item, result)
