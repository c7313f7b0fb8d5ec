"""What the two database servers of the tests have in common: an account, a folder, a life, and access by SQL.

Each is started by hand on the loopback interface, needs no installation, and is thrown away in the end.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import sqlalchemy
from sqlalchemy.pool import NullPool
from typing_extensions import Self

from tests.harness.ports import free_port
from tests.harness.process_group import ProcessGroup, start_group

USER = "hive"
START_SECONDS = 60
NOBODY = 65534
"""The user and the group that a server runs as where this process is root's, as database servers refuse that."""

SqlRow = tuple[object, ...]


class DatabaseServer(ABC):
    """A database server, started on entry as a context manager, stopped and thrown away on exit.

    It can be killed or stopped, and started again: port and data stay. It never outlives this Python process.

    :cvar schema: the name of its kind among Hive's schemas.
    :cvar runs_as_root: whether it needs no other user where this process is root's.
    """

    schema: str
    runs_as_root = False

    def __init__(self) -> None:
        self.port = free_port()
        self._user = NOBODY if os.geteuid() == 0 and not self.runs_as_root else None
        self._folder: Path | None = None
        self._group: ProcessGroup | None = None

    @property
    def folder(self) -> Path:
        """Everything that belongs to the server; it can be reached by the user the server runs as."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=f"acid-{self.schema}-"))
            self._hand_over(self._folder)
        return self._folder

    @property
    def pid(self) -> int | None:
        """Process id while the server runs."""
        return self._group.leader.pid if self._group is not None and self._group.leader.poll() is None else None

    @property
    def log_file(self) -> Path:
        """What the server wrote."""
        return self.folder / "server.log"

    def start(self) -> None:
        """Starts the server and waits until it answers.

        :raises RuntimeError: it ended, or does not answer within ``START_SECONDS``; nothing is left running.
        """
        if not self.data.exists():
            self._create()
        with self.log_file.open("ab") as log:
            command, folder = self._command(), self.folder
            self._group = start_group(command, folder, stdout=log, user=self._user, throw_away=folder)
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Ends the server, connections or not; nothing happens where it does not run."""
        self._end(self._stop_signal)

    def kill(self) -> None:
        """Ends the server by SIGKILL, as a crash would."""
        self._end(signal.SIGKILL)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._throw_away()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        self._throw_away()

    @property
    def data(self) -> Path:
        """Folder of the databases."""
        return self.folder / "data"

    def query(self, database: str, sql: str) -> list[SqlRow]:
        """Runs one statement in a transaction of its own; its rows, none where it returns none."""
        engine = sqlalchemy.create_engine(self.url(database), poolclass=NullPool)
        with engine.begin() as connection:
            result = connection.execute(sqlalchemy.text(sql))
            return [tuple(row) for row in result] if result.returns_rows else []

    @abstractmethod
    def url(self, database: str) -> str:
        """The SQLAlchemy URL of a database."""

    @abstractmethod
    def jdbc_settings(self, database: str) -> Mapping[str, str]:
        """The ``javax.jdo.option`` settings by which a metastore connects to a database."""

    @abstractmethod
    def create_database(self, name: str, schema: str) -> None:
        """Creates a database.

        :param schema: SQL script that creates its tables.
        """

    @property
    def _stop_signal(self) -> signal.Signals:
        return signal.SIGTERM

    @abstractmethod
    def _create(self) -> None:
        """Makes :attr:`data`."""

    @abstractmethod
    def _command(self) -> Sequence[str]:
        """The command line of the server, which stays in the foreground."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether this server accepts a connection; another that listens on its port does not count."""

    def _run(self, *command: str, input: str | None = None) -> None:
        done = subprocess.run(
            command,
            cwd=self.folder,
            check=False,
            capture_output=True,
            text=True,
            input=input,
            user=self._user,
            group=self._user,
            extra_groups=None if self._user is None else [],
        )
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} fails with {done.returncode}: {done.stderr[-1000:]}")

    def _hand_over(self, path: Path) -> None:
        if self._user is not None:
            os.chown(path, self._user, self._user)

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self.pid is None or time.monotonic() > deadline:
                tail = " | ".join(self.log_file.read_text(errors="replace").splitlines()[-5:])
                raise RuntimeError(f"{type(self).__name__} does not answer on port {self.port}: {tail}")
            time.sleep(0.05)

    def _end(self, how: signal.Signals) -> None:
        group, self._group = self._group, None
        if group is not None:
            group.end(how)

    def _throw_away(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder)
