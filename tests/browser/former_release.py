"""A former release at work until it is killed, and today's installed in its place."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.browser.first_week_site import compacted_partitions
from tests.harness.airflow_connections import connections_to
from tests.harness.hive_tables import FixtureTable, register
from tests.harness.metastore_server import MetastoreServer
from tests.harness.network_proxy import NetworkProxy
from tests.harness.quickstart import airflow_process
from tests.harness.thrift_admin import ThriftAdmin
from tests.harness.wheel_environment import ROOT, WheelEnvironment

DATABASE = "former"
TABLES = ("acid_buck", "acid_merge")
WHEEL = ROOT / "tests" / "fixtures" / "releases" / "airflow_provider_acid-0.1.0-py3-none-any.whl"
DAG_FILE = "from airflow_provider_acid.installed_dags import acid_compaction, acid_housekeeping\n"
EVERY_TABLE = {"tables": [f"{DATABASE}.*"]}
RUNS = {
    "acid_compaction": {**EVERY_TABLE, "delta_num_threshold": 1},
    "acid_housekeeping": {**EVERY_TABLE, "forgotten_after_seconds": 0},
}
"""The DAGs, and the conf with which each is run."""

RUN_SECONDS = 180


class FormerRelease:
    """An environment with the former release, and an Airflow whose DAGs are run by hand.

    :param environment: of the former release.
    :param health: the health store, which is the site's.
    """

    def __init__(self, folder: Path, environment: WheelEnvironment, server: MetastoreServer, health: Path) -> None:
        self.folder = folder
        self.environment = environment
        self._server = server
        self.tables = [register(server, name, "4.0.1", DATABASE) for name in TABLES]
        dags = folder / "dags"
        dags.mkdir()
        (dags / "acid.py").write_text(DAG_FILE)
        self._settings = {
            **airflow_process.prepare_environment(folder, server, environment.programs),
            **connections_to(server),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__HIVE_ACID__HEALTH_LOCATION": f"file:{health}",
        }
        migration = airflow_process.migrate_database(self._settings, folder / "migration.log")
        assert _ended(migration) == 0, (folder / "migration.log").read_text()

    def compact_until_killed(self) -> None:
        """A run that is killed when its second result is published and not committed."""
        with NetworkProxy(self._server.host, self._server.port) as proxy:
            killed = _Killed(proxy, self.tables)
            connections = connections_to(self._server, host=f"{proxy.host}:{proxy.port}")
            killed.process = self._start("acid_compaction", {**self._settings, **connections})
            assert _ended(killed.process) == -signal.SIGKILL, self.log()
        assert all(compacted_partitions(table) for table in self.tables)

    def states(self) -> dict[str, str]:
        """Of the newest request for each table, as SHOW COMPACTIONS has it."""
        with ThriftAdmin(self._server.host, self._server.port) as admin:
            return {row.table: row.state for row in admin.compactions(DATABASE)}

    def let_its_transaction_die(self) -> None:
        """What the metastore does once metastore.txn.timeout is over."""
        with ThriftAdmin(self._server.host, self._server.port) as admin:
            (transaction,) = admin.transactions().open
            admin.abort(transaction)

    def run(self, dag_id: str) -> None:
        """Run one of :data:`RUNS` to its end."""
        assert _ended(self._start(dag_id, self._settings)) == 0, self.log()

    def log(self) -> str:
        """What the runs said."""
        return (self.folder / "runs.log").read_text(errors="replace")[-8000:]

    def _start(self, dag_id: str, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
        return airflow_process.start_dag_test(settings, self.folder / "runs.log", RUNS[dag_id], dag_id)


def _ended(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a process, with which all that it started has ended."""
    try:
        return process.wait(RUN_SECONDS)
    finally:
        airflow_process.end(process)


class _Killed:
    """Kills a run at its second commit of a result, of which the metastore is not told."""

    def __init__(self, proxy: NetworkProxy, tables: list[FixtureTable]) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._has_committed = False
        self._proxy = proxy
        self._tables = tables
        self._watch()

    def _watch(self) -> None:
        self._proxy.do_before(b"commit_txn", self._at_commit)

    def _at_commit(self) -> None:
        published = [table for table in self._tables if compacted_partitions(table)]
        if len(published) == len(self._tables) and self._has_committed:
            assert self.process is not None
            os.killpg(self.process.pid, signal.SIGKILL)
            raise ConnectionAbortedError("the metastore is not told of this commit")
        self._has_committed = bool(published)
        self._watch()
