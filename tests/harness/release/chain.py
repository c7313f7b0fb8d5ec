"""The installed DAG of a wheel in an environment that was empty, on a metastore and tables of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.harness.acid_reader import as_hive_prints, read_table
from tests.harness.current_rows import comparable, snapshot_now
from tests.harness.hive_tables import FixtureTable, register
from tests.harness.metastore_server import MetastoreServer
from tests.harness.quickstart import airflow_process
from tests.harness.release.tagged import RefusalError
from tests.harness.thrift_admin import ThriftAdmin
from tests.harness.wheel_environment import WheelEnvironment

DATABASE = "released"
TABLES = ("acid_buck", "acid_merge")
_DAG_FILE = "from airflow_provider_acid.installed_dags import acid_compaction\n"
_RUN_SECONDS = 300


def try_wheel(wheel: Path, folder: Path) -> str:
    """Install a wheel and sweep two tables that Hive wrote.

    :param folder: an empty one, for all of it.
    :returns: what was done, in a line.
    :raises RefusalError: the sweep failed, did not compact, or the rows are not as Hive read them.
    """
    environment = WheelEnvironment(folder / "environment")
    environment.install(wheel)
    with MetastoreServer(folder / "metastore", reaper=True) as server:
        tables = [register(server, name, "4.0.1", DATABASE) for name in TABLES]
        _sweep(environment, server, folder)
        for table in tables:
            _check(server, table)
    return f"{len(tables)} tables compacted and cleaned, every row as Hive read it"


def _sweep(environment: WheelEnvironment, server: MetastoreServer, folder: Path) -> None:
    settings = airflow_process.prepare_environment(folder, server, environment.programs)
    dags = folder / "dags"
    dags.mkdir()
    (dags / "acid.py").write_text(_DAG_FILE)
    settings["AIRFLOW__CORE__DAGS_FOLDER"] = str(dags)
    log = folder / "airflow.log"
    conf = {"tables": [f"{DATABASE}.*"], "delta_num_threshold": 1}
    _wait(airflow_process.migrate_database(settings, log), log)
    _wait(airflow_process.start_dag_test(settings, log, conf), log)


def _wait(process: subprocess.Popen[bytes], log: Path) -> None:
    try:
        code = process.wait(_RUN_SECONDS)
    finally:
        airflow_process.end(process)
    if code != 0:
        raise RefusalError(f"the installed wheel failed:\n{log.read_text(errors='replace')[-8000:]}")


def _check(server: MetastoreServer, table: FixtureTable) -> None:
    definition = table.fixture.definition
    with ThriftAdmin(server.host, server.port) as admin:
        states = [row.state for row in admin.compactions(table.database) if row.table == table.name]
        snapshot = snapshot_now(admin, table.database, table.name)
    if states != ["succeeded"]:
        raise RefusalError(f"the sweep left the requests for {table.name} in the states {states}")
    kept = sorted(path.name for path in table.location.iterdir() if path.name.startswith(("base_", "delta_")))
    if not all("_v" in name for name in kept):
        raise RefusalError(f"the sweep left {kept} of {table.name}")
    read = read_table(table.location, definition.columns, snapshot, partition_keys=list(definition.partition_keys))
    if comparable(map(as_hive_prints, read)) != comparable(table.rows):
        raise RefusalError(f"the rows of {table.name} are not as Hive read them before")
