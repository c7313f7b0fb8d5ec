"""A real Hive Metastore, 4.0.1 on embedded Derby unless said otherwise, started and stopped from Python.

Derby serves one or two clients at a time well; with four and more some commits fail with "Internal error".
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hmsclient.genthrift.hive_metastore.ThriftHiveMetastore import Client
from thrift.transport.TTransport import TTransportException

from airflow_provider_acid.exceptions import MetastoreUnavailableError
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress, PlainTransportFactory, TransportFactory
from airflow_provider_acid.plan.thresholds import ENROLLED
from tests.harness.metastore_database import DerbyDatabase, MetastoreDatabase, ServerDatabase
from tests.harness.metastore_program import HIVE_4, MetastoreProgram, write_settings, write_site
from tests.harness.ports import HOST, free_port
from tests.harness.process_group import ProcessGroup, start_group
from tests.harness.startable import Startable

START_SECONDS = 90
REAPER_SECONDS = 5
"""Time-out of transactions where tests wait for the metastore to abort dead ones by itself."""

REAPER_INTERVAL_SECONDS = 1


@dataclass(frozen=True)
class Protection:
    """How a metastore is protected, and how its friends get in.

    :param settings: of the metastore.
    :param access: opens its friends' connections.
    :param hadoop_settings: of ``core-site.xml``.
    :param java_options: of its JVM.
    :param extra: of an Airflow connection to it.
    :param client_settings: of ``hive-site.xml`` of an SQL engine that works with it.
    :param client_environment: of that engine's process.
    :param jars: that its program needs for it.
    """

    settings: Mapping[str, str]
    access: TransportFactory
    hadoop_settings: Mapping[str, str] = field(default_factory=dict)
    java_options: Sequence[str] = ()
    extra: Mapping[str, object] = field(default_factory=dict)
    client_settings: Mapping[str, str] = field(default_factory=dict)
    client_environment: Mapping[str, str] = field(default_factory=dict)
    jars: Sequence[Path] = ()


UNPROTECTED = Protection({}, PlainTransportFactory())

_EVENT_CLEANER = "org.apache.hadoop.hive.metastore.events.EventCleanerTask"


class MetastoreServer(Startable):
    """One metastore process with its database, warehouse, settings and log below ``work_dir``.

    As a context manager it is started on entry and stopped on exit. A server that was killed or stopped can be
    started again: port, database and warehouse stay. It never outlives this Python process.

    :param work_dir: folder of everything that belongs to this server; made where it is missing.
    :param transaction_timeout_seconds: after so long without a heartbeat a transaction or lock counts as dead.
    :param reaper: whether the metastore aborts dead transactions by itself, looking once a second; on Hive 3 that
        takes its own Initiator and Cleaner, too.
    :param own_initiator: whether the metastore's own Initiator asks for compactions, looking once a second.
    :param own_cleaner: whether the metastore's own Cleaner deletes what compactions made obsolete.
    :param program: which version is run.
    :param database: a database of its own on a server; None for embedded Derby.
    :param warehouse_uri: where managed tables lie; None for :attr:`warehouse`. Metastore 4 puts them there whatever
        their database's location is.
    :param protection: what else than plain Thrift it speaks.
    :param host: its name, one of the loopback interface's.
    :param port: of one that runs already; None for a free one.
    """

    def __init__(
        self,
        work_dir: Path,
        *,
        transaction_timeout_seconds: int = 300,
        reaper: bool,
        own_initiator: bool = False,
        own_cleaner: bool = False,
        program: MetastoreProgram = HIVE_4,
        database: MetastoreDatabase | None = None,
        warehouse_uri: str | None = None,
        protection: Protection = UNPROTECTED,
        host: str = HOST,
        port: int | None = None,
    ) -> None:
        self._program = program
        self.work_dir = work_dir.resolve()
        self.warehouse_uri = warehouse_uri or f"file:{self.warehouse}"
        self.database = database or DerbyDatabase(self.work_dir / "derby")
        self.transaction_timeout_seconds = transaction_timeout_seconds
        self.reaper = reaper
        self.own_initiator = own_initiator or (reaper and program.reaper_needs_initiator)
        self.own_cleaner = own_cleaner
        self.cleans_aborts = True
        """Whether Hive 4's own Cleaner looks after aborted writes by itself, as by default."""
        self.protection = protection
        self.host = host
        self._port = port or free_port()
        self._users = 0
        self._group: ProcessGroup | None = None

    @classmethod
    def with_its_threads(
        cls, work_dir: Path, program: MetastoreProgram, database: MetastoreDatabase, timeout_seconds: int = 300
    ) -> MetastoreServer:
        """Reaper, Initiator and Cleaner are on as by default since 4.1; they look every second, not now and then."""
        return cls(
            work_dir,
            transaction_timeout_seconds=timeout_seconds,
            reaper=True,
            own_initiator=True,
            own_cleaner=True,
            program=program,
            database=database,
        )

    @property
    def port(self) -> int:
        """Where it listens. Whoever asks is going to call it, so it does not rest any longer."""
        self._signal(signal.SIGCONT)
        return self._port

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """It works while it is in use by anybody, and rests afterwards where it has threads of its own.

        These look every second at all that was ever written to. Of two dozen servers that waited for their next tests
        they took about a third of two processors.
        """
        self._users += 1
        self._signal(signal.SIGCONT)
        try:
            yield
        finally:
            self._users -= 1
            if self._users == 0 and self.reaper:
                self._signal(signal.SIGSTOP)

    @property
    def uri(self) -> str:
        """``thrift://host:port``."""
        return f"thrift://{self.host}:{self.port}"

    @property
    def server_database(self) -> ServerDatabase:
        """Its database on a server, with its SQLAlchemy URL and a way to ask it.

        :raises TypeError: it works on embedded Derby, which nobody else can open.
        """
        if not isinstance(self.database, ServerDatabase):
            raise TypeError("embedded Derby has one user")
        return self.database

    @property
    def database_url(self) -> str | None:
        """The SQLAlchemy URL of its database; None for embedded Derby, which nobody else can open."""
        return self.database.url if isinstance(self.database, ServerDatabase) else None

    @property
    def left_to_us(self) -> Mapping[str, str]:
        """Properties of tables for which its own Initiator asks nothing, while this package's sensor looks at them."""
        return {"no_auto_compaction": "true", ENROLLED: "true"} if self.own_initiator else {}

    @property
    def database_drivers(self) -> Sequence[Path]:
        """Jars by which it, and an engine of Hive 4 (``ALTER TABLE … COMPACT``), reach the database."""
        return self.database.jars(self._program)

    @property
    def warehouse(self) -> Path:
        """Local folder of the managed tables; a database ``d`` lies in ``d.db`` below it."""
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

        :raises MetastoreUnavailableError: it ended, does not answer within ``START_SECONDS``, or is of another version
            than its program's; nothing is left running.
        """
        self.warehouse.mkdir(parents=True, exist_ok=True)
        self.database.prepare(self._program)
        write_settings(self._settings_folder, self._settings())
        write_site(self._settings_folder / "core-site.xml", self.protection.hadoop_settings)
        command = self._program.command(
            *(self._settings_folder, self._program.main_class, "-p", str(self.port)),
            jars=[*self.database_drivers, *self.protection.jars],
            options=self.protection.java_options,
        )
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

    @property
    def _settings_folder(self) -> Path:
        return self.work_dir / "conf"

    def _settings(self) -> dict[str, str]:
        return {
            **self.database.settings(),
            "metastore.warehouse.dir": self.warehouse_uri,
            "hive.metastore.warehouse.dir": self.warehouse_uri,
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
            "hive.timedout.txn.reaper.start": "0s",
            "hive.timedout.txn.reaper.interval": f"{REAPER_INTERVAL_SECONDS}s",
            "metastore.compactor.initiator.on": _flag(self.own_initiator),
            "hive.compactor.initiator.on": _flag(self.own_initiator),
            "hive.compactor.check.interval": "1s",
            "metastore.compactor.check.interval": "1s",
            "metastore.compactor.worker.threads": "0",
            "hive.compactor.worker.threads": "0",
            "metastore.compactor.cleaner.on": _flag(self.own_cleaner),
            "hive.compactor.cleaner.on": _flag(self.own_cleaner),
            "metastore.compactor.clean.aborts.using.cleaner": _flag(self.cleans_aborts),
            "hive.compactor.clean.aborts.using.cleaner": _flag(self.cleans_aborts),
            "hive.compactor.cleaner.run.interval": "1000ms",
            "metastore.compactor.cleaner.run.interval": "1000ms",
            **self._program.settings,
            **self.protection.settings,
        }

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while (version := self._version()) is None:
            if self.pid is None:
                raise self._unavailable("the server ended while starting")
            if time.monotonic() > deadline:
                raise self._unavailable(f"no answer within {START_SECONDS} s")
            time.sleep(0.1)
        # Tests that name a version are on that one.
        if version != self._program.version_answer:
            raise self._unavailable(f"is version {version}, not {self._program.version_answer}")

    def _version(self) -> str | None:
        """The version of a metastore that accepts calls; a port that merely listens is not enough."""
        with socket.socket() as probe:
            if probe.connect_ex((HOST, self.port)) != 0:
                return None
        try:
            transport = self.protection.access.connect(MetastoreAddress(self.host, self.port), START_SECONDS)
        except TTransportException:
            return None
        try:
            client = Client(transport.protocol)
            return str(client.getVersion()) if client.get_all_databases() else None
        except TTransportException:
            return None
        finally:
            transport.close()

    def _signal(self, what: signal.Signals) -> None:
        if self.pid is not None:
            os.kill(self.pid, what)

    def _unavailable(self, reason: str) -> MetastoreUnavailableError:
        tail = " | ".join(self.log_file.read_text(errors="replace").splitlines()[-5:])
        return MetastoreUnavailableError(self.uri, f"{reason}: {tail}", f"read {self.log_file}")

    def _end(self, how: signal.Signals) -> None:
        self._signal(signal.SIGCONT)
        group, self._group = self._group, None
        if group is not None:
            group.end(how)


def _flag(value: bool) -> str:
    return "true" if value else "false"
