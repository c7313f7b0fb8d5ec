"""A real Hive SQL engine, 3.1.3 or 4.x, with its metastore: one JVM that answers statements.

Hive 3 runs its jobs by Hadoop's local MapReduce, Hive 4 by Tez in local mode; nothing but the two JVMs is needed.
"""

from __future__ import annotations

import base64
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import psutil

from tests.harness.hive_engine_program import (
    HIVE_3,
    EngineProgram,
    engine_program,
    hive_3_metastore_program,
    hive_4_metastore_program,
)
from tests.harness.hive_engine_settings import write_engine_settings
from tests.harness.java import SHORT_LIVED
from tests.harness.metastore_server import MetastoreServer
from tests.harness.process_group import ProcessGroup, start_group
from tests.harness.startable import Startable

STATEMENT_SECONDS = 120
"""After so long without an answer the engine is killed, unless told otherwise."""

JVM_OPTIONS = (
    *("-Xmx1500m", "-Xss8m", *SHORT_LIVED),
    *("-Duser.timezone=UTC", "-Dlog4j2.disable.jmx=true"),
)


class HiveStatementError(Exception):
    """Hive refused a statement or failed in it; the message is Hive's stack trace."""


class HiveEngine(Startable):
    """A session with Hive, and the metastore it works with.

    As a context manager both are started on entry and stopped on exit. They never outlive this Python process.

    :param version: ``3.1.3``, ``4.0.1``, ``4.1.0`` or ``4.2.1``.
    :param work_dir: folder of everything that belongs to them.
    :param metastore: of the same version, runs already and is left running; None for one of the engine's own. On
        Hive 4.0 its program must be :func:`~tests.harness.hive_engine_program.hive_4_metastore_program`, and later ones
        need one.
    :param jvm_options: of the engine; the default is made for a quick start and little memory.
    :param statement_seconds: after so long without an answer the engine is killed.
    """

    def __init__(
        self,
        version: str,
        work_dir: Path,
        metastore: MetastoreServer | None = None,
        *,
        jvm_options: Sequence[str] = JVM_OPTIONS,
        statement_seconds: float = STATEMENT_SECONDS,
    ) -> None:
        self.version = version
        self.work_dir = work_dir.resolve()
        self._group: ProcessGroup | None = None
        self._program: EngineProgram = engine_program(version, self.work_dir)
        self._jvm_options = jvm_options
        self._statement_seconds = statement_seconds
        self._own_metastore = metastore is None
        self.metastore = metastore or self._new_metastore()
        self._use = ExitStack()

    def start(self) -> None:
        """Starts the metastore where it is its own, and the engine; nothing is left running where that fails."""
        try:
            if self._own_metastore:
                self.metastore.start()
            self._use.enter_context(self.metastore.in_use())
            self._start_engine()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends the engine, and the metastore where it is its own, whatever they are doing."""
        group, self._group = self._group, None
        if group is not None:
            group.end(signal.SIGKILL)
        self._use.close()
        if self._own_metastore:
            self.metastore.stop()

    @property
    def pid(self) -> int:
        """Process id of the engine."""
        assert self._group is not None, "the engine does not run"
        return self._group.leader.pid

    @property
    def log_file(self) -> Path:
        """What Hive logs."""
        return self.work_dir / "hive.log"

    @property
    def cpu_seconds(self) -> float:
        """Processor time that the engine has taken so far."""
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)

    def execute(self, *statements: str) -> list[str]:
        """Runs statements one after the other; the rows of the last one, columns separated by tabs.

        :raises HiveStatementError: one of them fails; those after it are not run.
        """
        rows: list[str] = []
        for statement in statements:
            rows = self._ask(statement)
        return rows

    def set(self, settings: Mapping[str, str]) -> None:
        """Changes settings of the session, also those that ``SET`` refuses."""
        for name, value in settings.items():
            self._ask(f"#conf {name}={value}")

    def call(self, class_name: str, *arguments: str) -> None:
        """Calls ``run(HiveConf, String[])`` of one of the classes below ``hive-engine``; arguments without blanks."""
        self._ask(" ".join(("#run", class_name, *arguments)))

    def hold(self, query: str) -> None:
        """Takes the snapshot of a query on Hive 4, and not yet a lock; :meth:`release` is to be the next call."""
        self._ask(f"#hold {query}")

    def release(self) -> list[str]:
        """Runs the query that is held; its rows as those of :meth:`execute`."""
        return self._ask("#release")

    @contextmanager
    def aborting(self) -> Iterator[None]:
        """Every statement inside the block does its work and is then rolled back."""
        self.set({"hive.in.test": "true", "hive.test.rollbacktxn": "true"})
        try:
            yield
        finally:
            self.set({"hive.in.test": "false", "hive.test.rollbacktxn": "false"})

    def _new_metastore(self) -> MetastoreServer:
        program = hive_3_metastore_program(self._program) if self.version == HIVE_3 else hive_4_metastore_program()
        return MetastoreServer(self.work_dir / "metastore", reaper=False, program=program)

    def _start_engine(self) -> None:
        settings, protection = self.work_dir / "conf", self.metastore.protection
        write_engine_settings(self.version, settings, self.work_dir, self.metastore)
        command = [
            *(str(self._program.java), *self._jvm_options, f"-Djava.io.tmpdir={self.work_dir / 'tmp'}"),
            *protection.java_options,
            *(f"-Dlog4j.configurationFile={settings / 'hive-log4j2.properties'}",),
            *(*self._program.arguments(settings, self.metastore.database_drivers), "HiveEngine"),
        ]
        with (self.work_dir / "engine.out").open("ab") as output:
            self._group = start_group(
                command,
                self.work_dir,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                environment={
                    **{"HADOOP_HOME": "", "HIVE_CONF_DIR": str(settings), "TZ": "UTC", "LC_ALL": "C.UTF-8"},
                    **protection.client_environment,
                },
            )
        self._answer("start")
        # Tests that name a version are on that one: "4.0.1 r3af4517eb8cfd9407ad34ed78a0b48b57dfaa264".
        [found] = self.execute("SELECT version()")
        if found.partition(" ")[0] != self.version:
            raise HiveStatementError(f"the engine is version {found}, not {self.version}")

    def _ask(self, statement: str) -> list[str]:
        requests, _ = self._streams()
        requests.write(base64.b64encode(statement.encode()) + b"\n")
        requests.flush()
        return self._answer(statement)

    def _answer(self, statement: str) -> list[str]:
        _, answers = self._streams()
        watchdog = threading.Timer(self._statement_seconds, self._kill)
        watchdog.start()
        try:
            kind, _, content = answers.readline().decode().strip().partition(" ")
            if kind == "ok":
                return [base64.b64decode(answers.readline()).decode() for _ in range(int(content))]
        finally:
            watchdog.cancel()
        if kind == "error":
            raise HiveStatementError(f"{statement}\n{base64.b64decode(content).decode()}")
        tail = (self.work_dir / "engine.out").read_text(errors="replace")[-1000:]
        raise HiveStatementError(
            f"{statement}\nthe engine ended, or gave no answer in {self._statement_seconds} s: {tail}"
        )

    def _streams(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._group is not None, "the engine does not run"
        leader = self._group.leader
        assert leader.stdin is not None
        assert leader.stdout is not None
        return leader.stdin, leader.stdout

    def _kill(self) -> None:
        if self._group is not None:
            self._group.leader.kill()
