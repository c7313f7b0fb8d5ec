"""What the first week happens on: a new user's configuration and DAG files, his tables, and what is seen of them."""

from __future__ import annotations

import json
from urllib.parse import quote

from tests.browser.running_airflow import RunningAirflow
from tests.harness.acid_reader import as_hive_prints, read_table
from tests.harness.current_rows import comparable, snapshot_now
from tests.harness.hive_tables import FixtureTable, register
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import ThriftAdmin

INSTALLED_DAGS = ("acid_compact_table", "acid_compaction", "acid_doctor", "acid_housekeeping", "acid_undo")
WEB_SWEEP, WITHOUT_SPARK = "sweep_web", "sweep_without_spark"
SWEEPS = ("acid_compaction", WEB_SWEEP)
YEARLY = "0 0 1 1 *"
"""Once a sweep is switched on, its last run is made up for, and no other comes while the tests run."""

DAG_FILE = """\
from airflow_provider_acid.installed_dags import acid_compact_table, acid_compaction, acid_doctor
from airflow_provider_acid.installed_dags import acid_housekeeping, acid_undo
"""
SWEEPS_FILE = f"""\
from airflow_provider_acid.installed_dags import acid_compaction_dag

acid_compaction_dag("{WEB_SWEEP}", tables=["web.*"], schedule="{YEARLY}", max_partitions=1)
acid_compaction_dag("{WITHOUT_SPARK}", tables=["web.*"], schedule=None, spark={{"conn_id": "spark_lost"}})
"""
MISSPELT_FILES = {
    name: "from airflow_provider_acid.installed_dags import acid_compaction_dag\n\n"
    f'acid_compaction_dag("misspelt", tables=["web.*"], {said})\n'
    for name, said in {"option.py": "max_partitons=1", "literal.py": 'candidates="wirtten"'}.items()
}
OPTIONS = {
    "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
    "AIRFLOW__HIVE_ACID__TABLES": "sales.*",
    "AIRFLOW__HIVE_ACID__SCHEDULE": YEARLY,
    "AIRFLOW__HIVE_ACID__MAX_PARTITIONS": "200",
    "AIRFLOW__HIVE_ACID__DELTA_NUM_THRESHOLD": "1",
    "AIRFLOW__HIVE_ACID__KEEP_REPLACED_HOURS": "48",
    "AIRFLOW__HIVE_ACID__TASK_RETRIES": "2",
}


def register_tables(server: MetastoreServer) -> dict[str, FixtureTable]:
    """The tables of two databases, by name."""
    return {
        name: register(server, name, version, database)
        for database, version, names in (("sales", "4.0.1", ("acid_part", "acid_merge")), ("web", "3.1.3", ("a_part",)))
        for name in names
    }


def queue_and_files(server: MetastoreServer) -> tuple[object, ...]:
    """All that a compaction changes: requests, transactions, and what lies in the warehouse."""
    with ThriftAdmin(server.host, server.port) as admin:
        rows = [admin.compactions(database) for database in ("sales", "web")]
        transactions = admin.transactions()
        return rows, transactions.open, transactions.aborted, sorted(server.warehouse.rglob("*"))


def failure(airflow: RunningAirflow, dag_id: str, run: str) -> tuple[int, str]:
    """Of a run that has failed: the try in which its task failed, and that try's log."""
    path = f"/dags/{dag_id}/dagRuns/{run}"
    airflow.wait_until(lambda: airflow.ask(path)["state"] in ("failed", "success"), 120, f"{dag_id} has ended")
    assert airflow.ask(path)["state"] == "failed", airflow.logs()
    (task,) = [task for task in airflow.ask(f"{path}/taskInstances")["task_instances"] if task["state"] == "failed"]
    place = f"{path}/taskInstances/{task['task_id']}/logs/{task['try_number']}"
    where = f"{place}?map_index={task['map_index']}&full_content=true"
    return task["try_number"], json.dumps(airflow.ask(where)["content"])


def connect(airflow: RunningAirflow, name: str, **fields: object) -> None:
    """Make a connection."""
    airflow.call("POST", "/api/v2/connections", airflow.token("admin"), {"connection_id": name, **fields})


def switch_on(airflow: RunningAirflow, *dag_ids: str) -> None:
    """As by the switch in the list of DAGs."""
    for dag_id in dag_ids:
        airflow.call("PATCH", f"/api/v2/dags/{dag_id}", airflow.token("admin"), {"is_paused": False})


def scheduled_run(airflow: RunningAirflow, dag_id: str) -> str:
    """The one that Airflow makes of itself."""

    def runs() -> list[str]:
        return [run["dag_run_id"] for run in airflow.ask(f"/dags/{dag_id}/dagRuns")["dag_runs"]]

    airflow.wait_until(lambda: bool(runs()), 60, f"{dag_id} is run")
    (run,) = runs()
    assert run.startswith("scheduled__")
    return run


def directories(table: FixtureTable) -> list[str]:
    """What a table consists of, without what no reader looks at."""
    found = [path.relative_to(table.location) for path in table.location.rglob("*") if path.is_dir()]
    return sorted(str(path) for path in found if not any(part[0] in "._" for part in path.parts))


def compacted_partitions(table: FixtureTable) -> list[str]:
    """Those with what a compaction made; "" for a table without."""
    return [partition for partition in table.partitions or ("",) if list((table.location / partition).glob("*_v*"))]


def is_read_as_hive_did(server: MetastoreServer, table: FixtureTable) -> bool:
    """The same rows with the same ids, by readers of Hive's kind and of Trino's."""
    definition = table.fixture.definition
    with ThriftAdmin(server.host, server.port) as admin:
        snapshots = [snapshot_now(admin, table.database, table.name, check_visibility=check) for check in (True, False)]
    read = [
        read_table(table.location, definition.columns, snapshot, partition_keys=list(definition.partition_keys))
        for snapshot in snapshots
    ]
    return all(comparable(map(as_hive_prints, rows)) == comparable(table.rows) for rows in read)


def address_of(table: FixtureTable, partition: str) -> str:
    """Of a partition's page."""
    return f"/hive-acid/#/partition/{table.database}/{table.name}/{quote(partition, safe='')}"


def newest_compacted(table: FixtureTable) -> str:
    """The partition of a table that was compacted last."""

    def transaction(partition: str) -> int:
        return max(int(path.name.rpartition("_v")[2]) for path in (table.location / partition).glob("*_v*"))

    return max(compacted_partitions(table), key=transaction)
