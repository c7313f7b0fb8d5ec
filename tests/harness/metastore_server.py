"""A real Hive Metastore on embedded Derby, 4.0.1 unless said otherwise, started and stopped from Python.

Derby serves one or two clients at a time well; with four and more some commits fail with "Internal error".
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from xml.sax.saxutils import escape

from hmsclient.genthrift.hive_metastore.ThriftHiveMetastore import Client
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from airflow_provider_acid.exceptions import MetastoreUnavailableError
from tests.harness.jars import metastore_distribution, publish
from tests.harness.java import find_java
from tests.harness.process_group import ProcessGroup, start_group

HOST = "127.0.0.1"
START_SECONDS = 90
REAPER_INTERVAL_SECONDS = 1

_EVENT_CLEANER = "org.apache.hadoop.hive.metastore.events.EventCleanerTask"
_JVM_OPTIONS = (
    *("-Xmx512m", "-Xss8m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
    *("-Dderby.locks.deadlockTimeout=0", "-Dderby.locks.waitTimeout=5"),
)
_LOGGING = """\
appenders = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p [%t] %c{2}: %m%n
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
logger.DataNucleus.name = DataNucleus
logger.DataNucleus.level = ERROR
"""


@dataclass(frozen=True)
class MetastoreProgram:
    """A version of the metastore.

    :param distribution: brings the folder with its jars and Derby schema.
    :param java: of a distribution and a folder of settings, the arguments of ``java`` before the main class.
    :param schema_tool: the main class that creates the schema.
    :param home_variable: the environment variable in which that tool looks for the distribution.
    :param settings: beside those that all versions share.
    :param main_class: of the server; listens on the loopback interface only.
    """

    distribution: Callable[[], Path]
    java: Callable[[Path, Path], list[str]]
    schema_tool: str
    home_variable: str
    settings: Mapping[str, str] = field(default_factory=dict)
    main_class: str = "org.apache.hadoop.hive.metastore.HiveMetaStore"

    def command(self, distribution: Path, settings: Path, main_class: str, *arguments: str) -> list[str]:
        """The command line that runs a main class of the metastore."""
        return [str(find_java()), *_JVM_OPTIONS, *self.java(distribution, settings), main_class, *arguments]


def class_path_of(distribution: Path, settings: Path) -> list[str]:
    """The settings before all jars, in a stable order."""
    return ["-cp", os.pathsep.join(map(str, (settings, *sorted((distribution / "jars").glob("*.jar")))))]


HIVE_4 = MetastoreProgram(
    distribution=metastore_distribution,
    java=class_path_of,
    schema_tool="org.apache.hadoop.hive.metastore.tools.schematool.MetastoreSchemaTool",
    home_variable="METASTORE_HOME",
)


class MetastoreServer:
    """One metastore process with its database, warehouse, settings and log below ``work_dir``.

    As a context manager it is started on entry and stopped on exit. A server that was killed or stopped can be
    started again: port, database and warehouse stay. It never outlives this Python process.

    :param work_dir: folder of everything that belongs to this server; made where it is missing.
    :param transaction_timeout_seconds: after so long without a heartbeat a transaction or lock counts as dead.
    :param reaper: whether the metastore aborts dead transactions by itself, looking once a second.
    :param own_cleaner: whether the metastore's own Cleaner deletes what compactions made obsolete.
    :param program: which version is run.
    """

    def __init__(
        self,
        work_dir: Path,
        *,
        transaction_timeout_seconds: int = 300,
        reaper: bool,
        own_cleaner: bool = False,
        program: MetastoreProgram = HIVE_4,
    ) -> None:
        self._program = program
        self.work_dir = work_dir.resolve()
        self.transaction_timeout_seconds = transaction_timeout_seconds
        self.reaper = reaper
        self.own_cleaner = own_cleaner
        self.host = HOST
        self.port = _free_port()
        self._group: ProcessGroup | None = None

    @property
    def uri(self) -> str:
        """``thrift://host:port``."""
        return f"thrift://{self.host}:{self.port}"

    @property
    def warehouse(self) -> Path:
        """Folder of the managed tables; a database ``d`` lies in ``d.db`` below it."""
        return self.work_dir / "warehouse"

    @property
    def log_file(self) -> Path:
        """What the server wrote, all starts one after the other."""
        return self.work_dir / "metastore.log"

    @property
    def pid(self) -> int | None:
        """Process id while the server runs."""
        return self._group.leader.pid if self._group is not None and self._group.leader.poll() is None else None

    def start(self) -> None:
        """Starts the server and waits until it answers Thrift calls.

        :raises MetastoreUnavailableError: it ended, or does not answer within ``START_SECONDS``;
            nothing is left running.
        """
        distribution = self._program.distribution()
        self.warehouse.mkdir(parents=True, exist_ok=True)
        self._write_settings()
        if not self._database.exists():
            shutil.copytree(_initialised_database(self._program, distribution), self._database)
        main_class = self._program.main_class
        command = self._program.command(distribution, self._settings_folder, main_class, "-p", str(self.port))
        with self.log_file.open("ab") as log:
            self._group = start_group(command, self.work_dir, stdout=log)
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Ends the server; nothing happens where it does not run."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the server by SIGKILL, as a crash would."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stops the server where it runs, and starts it again on the same port and data."""
        self.stop()
        self.start()

    def __enter__(self) -> MetastoreServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _database(self) -> Path:
        return self.work_dir / "derby"

    @property
    def _settings_folder(self) -> Path:
        return self.work_dir / "conf"

    def _write_settings(self) -> None:
        self._settings_folder.mkdir(parents=True, exist_ok=True)
        _write_settings(self._settings_folder, self._settings())

    def _settings(self) -> dict[str, str]:
        return {
            **_database_settings(self._database, create=False),
            "metastore.warehouse.dir": f"file:{self.warehouse}",
            "hive.metastore.warehouse.dir": f"file:{self.warehouse}",
            "metastore.warehouse.external.dir": f"file:{self.work_dir / 'external'}",
            "metastore.thrift.uris": self.uri,
            "metastore.thrift.port": str(self.port),
            "metastore.thrift.bind.host": self.host,
            "metastore.task.threads.always": _EVENT_CLEANER,
            "metastore.housekeeping.leader.election": "host",
            "metastore.housekeeping.leader.hostname": "",
            "metastore.housekeeping.threads.on": _flag(self.reaper),
            "metastore.txn.timeout": f"{self.transaction_timeout_seconds}s",
            "hive.txn.timeout": f"{self.transaction_timeout_seconds}s",
            "metastore.acid.housekeeper.interval": f"{REAPER_INTERVAL_SECONDS}s",
            "metastore.compactor.initiator.on": "false",
            "metastore.compactor.worker.threads": "0",
            "metastore.compactor.cleaner.on": _flag(self.own_cleaner),
            "hive.compactor.cleaner.on": _flag(self.own_cleaner),
            "hive.compactor.cleaner.run.interval": "1000ms",
            "metastore.compactor.cleaner.run.interval": "1000ms",
            **self._program.settings,
        }

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(self.port):
            if self.pid is None:
                raise self._unavailable("the server ended while starting")
            if time.monotonic() > deadline:
                raise self._unavailable(f"no answer within {START_SECONDS} s")
            time.sleep(0.1)

    def _unavailable(self, reason: str) -> MetastoreUnavailableError:
        tail = " | ".join(self.log_file.read_text(errors="replace").splitlines()[-5:])
        return MetastoreUnavailableError(self.uri, f"{reason}: {tail}", f"read {self.log_file}")

    def _end(self, how: signal.Signals) -> None:
        group, self._group = self._group, None
        if group is not None:
            group.end(how)


def _answers(port: int) -> bool:
    """Whether the metastore accepts a call; a port that merely listens is not enough."""
    with socket.socket() as probe:
        if probe.connect_ex((HOST, port)) != 0:
            return False
    transport = TBufferedTransport(TSocket(HOST, port))
    try:
        transport.open()
        return bool(Client(TBinaryProtocol(transport)).get_all_databases())
    except TTransportException:
        return False
    finally:
        transport.close()


def _initialised_database(program: MetastoreProgram, distribution: Path) -> Path:
    """A Derby folder that holds the empty schema, made once and kept beside the jars to be copied from."""
    template = distribution / "derby-initialised"
    if not template.is_dir():
        with tempfile.TemporaryDirectory(dir=distribution, prefix=".schema-") as temporary:
            folder = Path(temporary)
            _write_settings(folder, _database_settings(folder / "derby", create=True))
            command = program.command(distribution, folder, program.schema_tool, "-dbType", "derby", "-initSchema")
            with (folder / "schematool.log").open("wb") as log:
                environment = {program.home_variable: str(distribution)}
                group = start_group(command, folder, stdout=log, environment=environment)
            try:
                failed = group.leader.wait(timeout=START_SECONDS) != 0
            finally:
                group.end(signal.SIGKILL)
            if failed:
                tail = (folder / "schematool.log").read_text(errors="replace")[-1000:]
                raise MetastoreUnavailableError(
                    "Derby schema of the metastore", f"the schema tool failed: {tail}", f"remove {distribution}"
                )
            publish(folder / "derby", template)
    return template


def _database_settings(database: Path, *, create: bool) -> dict[str, str]:
    return {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={database}{';create=true' if create else ''}",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "metastore.async.log.enabled": "false",  # true needs one more jar
        "hive.async.log.enabled": "false",
    }


def _write_settings(folder: Path, settings: dict[str, str]) -> None:
    """The Cleaner reads hive-site.xml only, the rest metastore-site.xml."""
    properties = "\n".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in settings.items()
    )
    for name in ("metastore-site.xml", "hive-site.xml"):
        (folder / name).write_text(f"<configuration>\n{properties}\n</configuration>\n")
    for name in ("metastore-log4j2.properties", "hive-log4j2.properties"):
        (folder / name).write_text(_LOGGING)


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
