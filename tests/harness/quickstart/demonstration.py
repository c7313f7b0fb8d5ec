"""The two things ``./quickstart`` does: one run of the DAG with a look before and after, or an Airflow to play with."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_acid.acid.hive import HIVE_4
from airflow_provider_acid.compaction.evaluate.initiator import Evaluation, Initiator
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.metastore.hive4.queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from airflow_provider_acid.plan.thresholds import Thresholds
from tests.harness.jars import cache_folder, metastore_distribution
from tests.harness.metastore_server import MetastoreServer
from tests.harness.quickstart import airflow_process
from tests.harness.quickstart.airflow_process import Component
from tests.harness.quickstart.demo_tables import DATABASE, DemoTable, register_generated, register_hive_written
from tests.harness.quickstart.display import Display
from tests.harness.quickstart.run_watch import RunWatch
from tests.harness.quickstart.table_state import PartitionState, table_state
from tests.harness.thrift_admin import ThriftAdmin

DELTA_NUM_THRESHOLD = 1
"""Hive's default is 10; the tables that Hive wrote are small."""

RUN_SECONDS = 900
UI_START_SECONDS = 180
POLL_SECONDS = 0.5


class QuickstartError(Exception):
    """The demonstration did not show what it has to show."""


@dataclass(frozen=True)
class Stage:
    """Everything that a demonstration needs, up and running."""

    folder: Path
    server: MetastoreServer
    environment: dict[str, str]
    tables: Sequence[DemoTable]


@contextmanager
def stage(folder: Path, display: Display) -> Iterator[Stage]:
    """A metastore with the tables, and Airflow's database; all ended afterwards."""
    if not cache_folder().is_dir():
        display.say("Fetching Hive Metastore 4.0.1 from Maven Central, once (160 MB)")
    metastore_distribution()
    server = MetastoreServer(folder / "metastore", reaper=False)
    environment = airflow_process.prepare_environment(folder, server)
    with ExitStack() as cleanup:
        migration = airflow_process.migrate_database(environment, folder / "airflow.log")
        cleanup.callback(airflow_process.end, migration)
        display.say("Starting a Hive Metastore 4.0.1 on Derby, and Airflow's database on SQLite")
        cleanup.enter_context(server)
        display.say("Registering tables written by Hive 4.0.1 and 3.1.3, and making one of a million rows")
        tables = [register_generated(server), *register_hive_written(server)]
        if migration.wait(RUN_SECONDS) != 0:
            raise QuickstartError(f"'airflow db migrate' failed: {_last_words(folder / 'airflow.log')}")
        yield Stage(folder, server, environment, tables)


def demonstrate(stage: Stage, display: Display) -> dict[str, int]:
    """One run of the DAG; what changed, in figures.

    :raises QuickstartError: it failed, or a table does not hold the rows it held before.
    """
    before = _look(stage)
    figures = _sum(before, "before")
    display.say(
        f"{len(stage.tables)} tables, {len(before)} partitions: {figures['directories_before']} directories,"
        f" {figures['bytes_before']:,} bytes, {figures['rows_before']:,} rows"
    )
    _run_dag(stage, display)
    after = _look(stage)
    display.outcome(stage.tables, before, after)
    compacted, evaluation = _ask_metastore(stage)
    for reason in evaluation.skipped:
        display.say(f"skipped: {reason}")
    _check_rows(before, after)
    return {"partitions_compacted": compacted, **_in_order(figures, _sum(after, "after"))}


def serve_ui(stage: Stage, display: Display) -> None:
    """Keeps an Airflow up until it is interrupted.

    :raises QuickstartError: it does not start, or a part of it ended.
    """
    port = airflow_process.free_port()
    environment = airflow_process.ui_environment(stage.environment, port)
    address = f"http://127.0.0.1:{port}"
    components: list[Component] = []
    display.say("Starting Airflow (its output goes to airflow-*.log)")
    try:
        for component in airflow_process.start_ui(environment, stage.folder):
            components.append(component)
        _wait_until_healthy(address, components)
        display.say(f"Airflow: {address}/dags/{airflow_process.DAG_ID}  (no password; this machine only)")
        display.say(
            f"The tables lie in database {DATABASE} of the metastore at {stage.server.uri}. A first run is on its way;"
            f" trigger another with 'Deltas' set to {DELTA_NUM_THRESHOLD} to compact the small tables too."
        )
        display.say("Ctrl-C ends everything.")
        while True:
            _check_alive(components)
            time.sleep(1)
    finally:
        airflow_process.end(*(component.process for component in components))


def _look(stage: Stage) -> list[PartitionState]:
    with ThriftAdmin(stage.server.host, stage.server.port) as admin:
        return [state for table in stage.tables for state in table_state(admin, table)]


def _run_dag(stage: Stage, display: Display) -> None:
    conf = {"tables": [f"{DATABASE}.*"], "delta_num_threshold": DELTA_NUM_THRESHOLD, "cleaning_deadline_seconds": 0.05}
    display.say(f"airflow dags test {airflow_process.DAG_ID} -c '{json.dumps(conf)}'")
    watch = RunWatch(stage.tables, Path(stage.environment["HOME"], ".airflow_acid", "runs"))
    began = time.monotonic()
    process = airflow_process.start_dag_test(stage.environment, stage.folder / "airflow.log", conf)
    try:
        while process.poll() is None:
            display.progress(watch.poll(), time.monotonic() - began)
            if time.monotonic() - began > RUN_SECONDS:
                raise QuickstartError(f"the DAG did not end within {RUN_SECONDS} s")
            time.sleep(POLL_SECONDS)
        display.progress(watch.poll(), time.monotonic() - began)
    finally:
        display.end_progress()
        airflow_process.end(process)
    if process.returncode != 0:
        raise QuickstartError(f"the DAG failed: {_failures(stage) or _last_words(stage.folder / 'airflow.log')}")
    display.say(f"The DAG succeeded after {time.monotonic() - began:.0f} s")


def _failures(stage: Stage) -> str:
    with _client(stage) as client:
        rows = ThriftCompactionQueue(client, HIVE_4).rows()
    failed = [row for row in rows if row.error_message]
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return f"{failed[0].entity}: {failed[0].error_message}{more}" if failed else ""


def _ask_metastore(stage: Stage) -> tuple[int, Evaluation]:
    """How many partitions it calls compacted, and what a look at the tables finds now.

    :raises QuickstartError: a request did not succeed, or a partition is still due.
    """
    settings = CompactionSettings(thresholds=Thresholds(delta_num_threshold=DELTA_NUM_THRESHOLD))
    with _client(stage) as client:
        queue = ThriftCompactionQueue(client, HIVE_4)
        rows = queue.rows()
        evaluation = Initiator(client, queue, settings).evaluate(TableSelection.of([f"{DATABASE}.*"]))
    unfinished = [row for row in rows if row.state is not CompactionState.SUCCEEDED]
    if unfinished:
        raise QuickstartError("; ".join(map(_words, unfinished)))
    if evaluation.due:
        raise QuickstartError(f"{evaluation.due[0].entity} is still due: {evaluation.due[0].reason}")
    return len({row.entity for row in rows}), evaluation


def _words(row: CompactionRow) -> str:
    return f"the metastore calls {row.entity} {row.state.value}: {row.error_message or 'no message'}"


def _client(stage: Stage) -> AcidMetastoreClient:
    return AcidMetastoreClient([MetastoreAddress(stage.server.host, stage.server.port)], timeout_seconds=60, user=None)


def _sum(states: Sequence[PartitionState], when: str) -> dict[str, int]:
    return {
        f"rows_{when}": sum(state.rows or 0 for state in states),
        f"directories_{when}": sum(state.directories for state in states),
        f"bytes_{when}": sum(state.size_bytes for state in states),
    }


def _in_order(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Each figure before and after, side by side."""
    return {name: value for pair in zip(before.items(), after.items(), strict=True) for name, value in pair}


def _check_rows(before: Sequence[PartitionState], after: Sequence[PartitionState]) -> None:
    for old, new in zip(before, after, strict=True):
        if (old.rows, old.checksum) != (new.rows, new.checksum):
            raise QuickstartError(
                f"{old.table}/{old.partition or ''}: {old.rows} rows with checksum {old.checksum:x} became"
                f" {new.rows} with {new.checksum:x}"
            )


def _wait_until_healthy(address: str, components: Sequence[Component]) -> None:
    deadline = time.monotonic() + UI_START_SECONDS
    while not _is_healthy(address):
        _check_alive(components)
        if time.monotonic() > deadline:
            raise QuickstartError(f"Airflow does not answer within {UI_START_SECONDS} s")
        time.sleep(0.5)


def _is_healthy(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/api/v2/monitor/health", timeout=5) as answer:
            health = json.load(answer)
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False
    return all(health[part]["status"] == "healthy" for part in ("scheduler", "dag_processor", "triggerer"))


def _check_alive(components: Sequence[Component]) -> None:
    for component in components:
        if component.process.poll() is not None:
            raise QuickstartError(f"'airflow {component.name}' ended: {_last_words(component.log)}")


def _last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return " | ".join(line.strip() for line in lines[-3:])
