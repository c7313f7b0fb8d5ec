"""Airflow's command line, in forks of one process that has done what every command does first.

``airflow dags test`` takes a processor for 14 s, of which 10 go into imports and into Airflow's own API, the same each
time. So a test of many runs takes them once. What is of this package is imported by each command anew.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from signal import SIGTERM

from tests.harness.process_group import ProcessGroup, start_group
from tests.harness.startable import Startable

ROOT = Path(__file__).parents[2]


class AirflowCommands(Startable):
    """One Airflow installation's command line.

    :param home: with Airflow's database, which is made where it is not there.
    :param dags: the folder of the DAGs.
    """

    def __init__(self, home: Path, dags: Path) -> None:
        self.home = home
        self._dags = dags
        self._group: ProcessGroup | None = None

    def start(self) -> None:
        """See :meth:`~.startable.Startable.start`; the first command waits for what is done first."""
        self.home.mkdir(exist_ok=True)
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {
            **os.environ,
            "PATH": programs,
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self._dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        }
        with (self.home / "commands.log").open("wb") as log:
            self._group = start_group(
                [sys.executable, "-m", __name__],
                ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                environment=environment,
            )
        try:
            if not (self.home / "airflow.db").exists():
                log_of_it = self.home / "migration.log"
                assert self.run(["db", "migrate"], {}, log_of_it) == 0, log_of_it.read_text()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """See :meth:`~.startable.Startable.stop`."""
        if self._group is not None:
            self._group.end(SIGTERM)
            self._group = None

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> int:
        """Run a command to its end; its exit code.

        :param environment: what it has besides.
        :param log: gets all that it says, and can be read meanwhile.
        """
        assert self._group is not None, "not started"
        process = self._group.leader
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([list(arguments), dict(environment), str(log)]).encode() + b"\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        assert answer, (self.home / "commands.log").read_text()
        return int(answer)


def main() -> None:
    """Fork for each command that comes by the standard input, and answer with its exit code."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for name in ("airflow.__main__", "airflow.cli.commands.dag_command"):
        importlib.import_module(name)
    _warm_up_the_api()
    for line in sys.stdin:
        arguments, environment, log = json.loads(line)
        child = os.fork()
        if not child:
            os.environ.update(environment)
            written, nothing = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), os.open(os.devnull, os.O_RDONLY)
            for opened, number in ((nothing, 0), (written, 1), (written, 2)):
                os.dup2(opened, number)
            sys.argv = ["airflow", *arguments]
            runpy.run_module("airflow", run_name="__main__")
            sys.exit()
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def _warm_up_the_api() -> None:
    """Make the API by which a task in the command's own process speaks to Airflow, which 2 has not.

    It makes its routes at the first request of a task. No thread is left, which no fork would have.
    """
    try:
        from airflow.sdk.execution_time.supervisor import in_process_api_server
    except ImportError:
        return
    import httpx

    app = in_process_api_server().app

    async def ask() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://airflow") as client:
            await client.get("/no-such-page")

    asyncio.run(ask())


if __name__ == "__main__":
    main()
