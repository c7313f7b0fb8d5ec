"""An Airflow with its UI, for users with and without rights, and what its API says of runs."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.harness.metastore_server import MetastoreServer
from tests.harness.quickstart import airflow_process
from tests.harness.quickstart.airflow_process import Component
from tests.harness.startable import Startable

USERS = {"admin": "admin", "viewer": "viewer"}
"""Names, which are passwords too, and roles."""

START_SECONDS = 240
RUN_SECONDS = 300


class RunningAirflow(Startable):
    """Everything below one folder.

    :param dag_files: the DAG files, by name.
    :param dags: how many DAGs they have.
    :param settings: environment variables beside those of the quickstart.
    :param programs: the folder of Airflow's commands; None for this Python's.
    """

    def __init__(
        self,
        folder: Path,
        server: MetastoreServer,
        dag_files: Mapping[str, str],
        dags: int,
        settings: Mapping[str, str],
        programs: Path | None = None,
    ) -> None:
        self.folder = folder
        self.server = server
        self.address = f"http://127.0.0.1:{airflow_process.free_port(0)}"
        self.health = folder / "health"
        self.dags_folder = folder / "dags"
        self._dags = dags
        self._environment = self._prepared(dag_files, settings, programs)
        self._migration: subprocess.Popen[bytes] | None = None
        self._components: list[Component] = []
        self._tokens: dict[str, str] = {}

    @property
    def environment(self) -> Mapping[str, str]:
        """Of every process of it."""
        return self._environment

    def begin(self) -> None:
        """Begin to make Airflow's database; the metastore need not run yet."""
        self._migration = airflow_process.migrate_database(self._environment, self.folder / "migration.log")

    def start(self) -> None:
        """Start Airflow, once its database is there."""
        if self._migration is None:
            self.begin()
        assert self._migration is not None
        try:
            assert self._migration.wait(START_SECONDS) == 0, (self.folder / "migration.log").read_text()
            self._components.extend(airflow_process.start_ui(self._environment, self.folder))
            self.wait_until(self._is_ready, START_SECONDS, "Airflow is up, with its DAGs")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything of Airflow."""
        if self._migration is not None:
            airflow_process.end(self._migration)
        airflow_process.end(*(component.process for component in self._components))
        self._components.clear()

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

    def ask(self, path: str) -> Any:
        """What Airflow's API tells its administrator."""
        return self.call("GET", f"/api/v2{path}", self.token("admin"))

    def trigger(self, dag_id: str, conf: Mapping[str, object] | None = None) -> str:
        """Start a run; its id."""
        body = {"logical_date": None, "conf": dict(conf or {})}
        return str(self.call("POST", f"/api/v2/dags/{dag_id}/dagRuns", self.token("admin"), body)["dag_run_id"])

    def wait_for_run(self, dag_id: str, run_id: str) -> None:
        """Wait until a run has succeeded."""

        def ended() -> bool:
            state = self.ask(f"/dags/{dag_id}/dagRuns/{run_id}")["state"]
            assert state != "failed", self.logs()
            return bool(state == "success")

        self.wait_until(ended, RUN_SECONDS, f"{dag_id} {run_id} has succeeded")

    def wait_until(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait until something is so.

        :raises AssertionError: it is not within these seconds.
        """
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s: {what}\n{self.logs()}"
            time.sleep(0.5)

    def logs(self) -> str:
        """The last words of every process and task."""
        files = [*self.folder.glob("*.log"), *self.folder.glob("airflow/logs/**/*.log")]
        return "\n".join(f"== {file}\n{file.read_text(errors='replace')[-3000:]}" for file in files)

    def _prepared(
        self, dag_files: Mapping[str, str], settings: Mapping[str, str], programs: Path | None
    ) -> dict[str, str]:
        self.dags_folder.mkdir()
        for name, text in dag_files.items():
            (self.dags_folder / name).write_text(text)
        passwords = self.folder / "passwords.json"
        passwords.write_text(json.dumps({user: user for user in USERS}))
        port = int(self.address.rpartition(":")[2])
        among = () if programs is None else (programs,)
        environment = airflow_process.prepare_environment(self.folder, self.server, *among)
        return {
            **airflow_process.ui_environment(environment, port),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags_folder),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in USERS.items()),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
            "AIRFLOW__HIVE_ACID__HEALTH_LOCATION": f"file:{self.health}",
            **settings,
        }

    def _is_ready(self) -> bool:
        for component in self._components:
            assert component.process.poll() is None, component.log.read_text(errors="replace")[-3000:]
        try:
            health = self.call("GET", "/api/v2/monitor/health", None)
            dags = self.ask("/dags")
        except OSError:
            return False
        parts = ("scheduler", "dag_processor", "triggerer")
        return dags["total_entries"] == self._dags and all(health[part]["status"] == "healthy" for part in parts)


def _request(method: str, url: str, token: str | None, body: object) -> urllib.request.Request:
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    return urllib.request.Request(url, data=data, headers=headers, method=method)
