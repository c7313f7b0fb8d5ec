"""An Airflow with its UI, a Hive metastore with tables that Hive wrote, and users with and without rights."""

from __future__ import annotations

import json
import shutil
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.harness.hive_tables import FixtureTable, register
from tests.harness.metastore_server import MetastoreServer
from tests.harness.quickstart import airflow_process
from tests.harness.quickstart.airflow_process import Component
from tests.harness.quickstart.work_folder import REPOSITORY
from tests.harness.startable import Startable

DATABASE = "shop"
TABLES = {
    **dict.fromkeys(("acid_part", "acid_merge", "acid_abort", "acid_buck", "acid_multi", "mm_plain"), "4.0.1"),
    **dict.fromkeys(("a_merge", "a_part", "a_types"), "3.1.3"),
}
USERS = {"admin": "admin", "viewer": "viewer"}
"""Names, which are passwords too, and roles."""

START_SECONDS = 240
RUN_SECONDS = 300

LOOK = """\
from airflow.sdk import DAG
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor

with DAG("look", schedule=None):
    AcidCompactionSensor(task_id="look", tables=["shop.*"], delta_num_threshold=1, decide_only=True)
"""
"""Evaluates all tables and compacts nothing."""


class AirflowSite(Startable):
    """Everything below one folder; nothing is known of any partition at the beginning."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.server = MetastoreServer(folder / "metastore", reaper=False)
        self.address = f"http://127.0.0.1:{airflow_process.free_port(0)}"
        self.health = folder / "health"
        self.tables: dict[str, FixtureTable] = {}
        self._components: list[Component] = []
        self._tokens: dict[str, str] = {}

    def start(self) -> None:
        """Start the metastore and Airflow at the same time."""
        environment = self._environment()
        migration = airflow_process.migrate_database(environment, self._folder / "migration.log")
        try:
            self.server.start()
            self.tables = {name: register(self.server, name, version, DATABASE) for name, version in TABLES.items()}
            assert migration.wait(START_SECONDS) == 0, (self._folder / "migration.log").read_text()
            self._components.extend(airflow_process.start_ui(environment, self._folder))
            self._wait_until(self._is_ready, START_SECONDS, "Airflow is up, with its DAGs")
        except BaseException:
            airflow_process.end(migration)
            self.stop()
            raise

    def stop(self) -> None:
        """End everything."""
        airflow_process.end(*(component.process for component in self._components))
        self._components.clear()
        self.server.stop()

    def token(self, user: str) -> str:
        """What shows that somebody has signed in."""
        if user not in self._tokens:
            answer = self.call("POST", "/auth/token", None, {"username": user, "password": user})
            self._tokens[user] = str(answer["access_token"])
        return self._tokens[user]

    def status(self, path: str, token: str | None) -> int:
        """The status with which a GET is answered."""
        try:
            with urllib.request.urlopen(_request("GET", self.address + path, token, None), timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def call(self, method: str, path: str, token: str | None, body: object = None) -> Any:
        """An answer of Airflow's API."""
        with urllib.request.urlopen(_request(method, self.address + path, token, body), timeout=60) as answer:
            return json.load(answer)

    def look(self) -> None:
        """Evaluate all tables, as a scheduled run does."""
        path = "/api/v2/dags/look/dagRuns"
        run = self.call("POST", path, self.token("admin"), {"logical_date": None})["dag_run_id"]
        self.wait_for_run("look", run)

    def wait_for_run(self, dag_id: str, run_id: str) -> None:
        """Wait until a run has succeeded."""

        def ended() -> bool:
            state = self.call("GET", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}", self.token("admin"))["state"]
            assert state != "failed", self.logs()
            return bool(state == "success")

        self._wait_until(ended, RUN_SECONDS, f"{dag_id} {run_id} has succeeded")

    def logs(self) -> str:
        """The last words of every process and task."""
        files = [*self._folder.glob("*.log"), *self._folder.glob("airflow/logs/**/*.log")]
        return "\n".join(f"== {file}\n{file.read_text(errors='replace')[-3000:]}" for file in files)

    def _environment(self) -> dict[str, str]:
        dags = self._folder / "dags"
        dags.mkdir()
        shutil.copy(REPOSITORY / "dags" / "acid_compact_table.py", dags)
        (dags / "look.py").write_text(LOOK)
        passwords = self._folder / "passwords.json"
        passwords.write_text(json.dumps({user: user for user in USERS}))
        port = int(self.address.rpartition(":")[2])
        environment = airflow_process.prepare_environment(self._folder, self.server)
        return {
            **airflow_process.ui_environment(environment, port),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in USERS.items()),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
            "AIRFLOW__HIVE_ACID__HEALTH_LOCATION": f"file:{self.health}",
        }

    def _is_ready(self) -> bool:
        for component in self._components:
            assert component.process.poll() is None, component.log.read_text(errors="replace")[-3000:]
        try:
            health = self.call("GET", "/api/v2/monitor/health", None)
            dags = self.call("GET", "/api/v2/dags", self.token("admin"))
        except OSError:
            return False
        parts = ("scheduler", "dag_processor", "triggerer")
        return dags["total_entries"] == 2 and all(health[part]["status"] == "healthy" for part in parts)

    def _wait_until(self, condition: Any, seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s: {what}\n{self.logs()}"
            time.sleep(0.5)


def _request(method: str, url: str, token: str | None, body: object) -> urllib.request.Request:
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    return urllib.request.Request(url, data=data, headers=headers, method=method)
