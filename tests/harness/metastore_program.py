"""What it takes to run a version of Hive's metastore: jars, schema, class path and the files of its settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

from tests.harness.jars import SCHEMAS, JarList, distribution, metastore_distribution
from tests.harness.java import SHORT_LIVED, find_java

_JVM_OPTIONS = (
    *("-Xmx512m", "-Xss8m", *SHORT_LIVED),
    *("-Dderby.locks.deadlockTimeout=0", "-Dderby.locks.waitTimeout=5"),
)
_DATABASES = Path(__file__).with_name("databases")
_ASYNCHRONOUS_LOG = {
    "metastore.async.log.enabled": "false",
    "hive.async.log.enabled": "false",
}  # true needs one more jar
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
class DatabaseSupport:
    """The JDBC drivers for database servers, and the schemas a version of the metastore has there.

    :param hive_version: of the metastore whose distribution holds drivers and scripts.
    :param schema_version: which is not always the metastore's own.
    :param upgrades: names of the scripts in the folder ``databases`` that make it a later one, in their order.
    """

    hive_version: str
    schema_version: str
    upgrades: Sequence[str] = ()

    def jars(self) -> Sequence[Path]:
        """The drivers."""
        return sorted((self._distribution() / "jars").glob("*.jar"))

    def schema(self, kind: str) -> str:
        """The SQL script for a kind of database: ``postgres`` or ``mysql``."""
        script = (self._distribution() / SCHEMAS / self._schema_file(kind)).read_text()
        return "\n".join([script, *((_DATABASES / f"{name}.{kind}.sql").read_text() for name in self.upgrades)])

    def _schema_file(self, kind: str) -> str:
        return f"{kind}/hive-schema-{self.schema_version}.{kind}.sql"

    def _distribution(self) -> Path:
        list_file = _DATABASES / f"databases-{self.hive_version}.sha256"
        files = frozenset(map(self._schema_file, ("postgres", "mysql")))
        return distribution(JarList(f"hive-databases-{self.schema_version}", list_file, files))


@dataclass(frozen=True)
class MetastoreProgram:
    """A version of the metastore.

    :param distribution: brings the folder with its jars and Derby schema.
    :param java: of a distribution, a folder of settings and further jars, the arguments of ``java`` before the main
        class.
    :param schema_tool: the main class that creates the schema.
    :param home_variable: the environment variable in which that tool looks for the distribution.
    :param databases: what it needs to work on a database server.
    :param version_answer: what it answers to ``getVersion``; that of 3.1.3 is 3.0.
    :param settings: beside those that all versions share.
    :param main_class: of the server; listens on the loopback interface only.
    :param find_java: the ``java`` command that it needs.
    :param reaper_needs_initiator: whether dead transactions are aborted only where the Initiator is on, which also
        starts the Cleaner.
    """

    distribution: Callable[[], Path]
    java: Callable[[Path, Path, Sequence[Path]], list[str]]
    schema_tool: str
    home_variable: str
    databases: DatabaseSupport
    version_answer: str
    settings: Mapping[str, str] = field(default_factory=dict)
    main_class: str = "org.apache.hadoop.hive.metastore.HiveMetaStore"
    find_java: Callable[[], Path] = find_java
    reaper_needs_initiator: bool = False

    def command(
        self,
        settings: Path,
        main_class: str,
        *arguments: str,
        jars: Sequence[Path] = (),
        options: Sequence[str] = (),
    ) -> list[str]:
        """The command line that runs a main class of the metastore.

        :param settings: folder of the settings.
        :param jars: beside those of the distribution.
        :param options: of the JVM, beside the usual ones.
        """
        java = self.java(self.distribution(), settings, jars)
        return [str(self.find_java()), *_JVM_OPTIONS, *options, *java, main_class, *arguments]


def class_path_of(distribution: Path, settings: Path, jars: Sequence[Path] = ()) -> list[str]:
    """The settings before all jars, in a stable order."""
    return ["-cp", os.pathsep.join(map(str, (settings, *sorted((distribution / "jars").glob("*.jar")), *jars)))]


HIVE_4 = MetastoreProgram(
    distribution=metastore_distribution,
    java=class_path_of,
    schema_tool="org.apache.hadoop.hive.metastore.tools.schematool.MetastoreSchemaTool",
    home_variable="METASTORE_HOME",
    databases=DatabaseSupport("4.0.1", "4.0.0"),
    version_answer="4.0.1",
)


def write_settings(folder: Path, settings: Mapping[str, str]) -> None:
    """Writes all files of a metastore's settings; the Cleaner reads hive-site.xml only, the rest metastore-site.xml."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("metastore-site.xml", "hive-site.xml"):
        write_site(folder / name, {**_ASYNCHRONOUS_LOG, **settings})
    for name in ("metastore-log4j2.properties", "hive-log4j2.properties"):
        (folder / name).write_text(_LOGGING)


def write_site(file: Path, settings: Mapping[str, str]) -> None:
    """Writes one file of settings in the form of Hadoop and Hive."""
    properties = "\n".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in settings.items()
    )
    file.write_text(f"<configuration>\n{properties}\n</configuration>\n")
