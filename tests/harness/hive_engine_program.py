"""What it takes to run Hive's SQL engine: jars, class path, compiled classes and JVM options of each version."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from airflow_provider_acid.exceptions import ConfigurationError
from tests.harness.jars import JarList, derby_schema, distribution
from tests.harness.java import find_java
from tests.harness.java_21 import java_21
from tests.harness.metastore_program import HIVE_4 as HIVE_4_METASTORE
from tests.harness.metastore_program import DatabaseSupport, MetastoreProgram, class_path_of

HIVE_3, HIVE_4_ALPHA, HIVE_4_0_0, HIVE_4, HIVE_4_1, HIVE_4_2 = (
    "3.1.3",
    "4.0.0-alpha-1",
    "4.0.0",
    "4.0.1",
    "4.1.0",
    "4.2.1",
)
SOURCES = Path(__file__).with_name("hive-engine")

_TXN_SERVICES = "org.apache.hadoop.hive.metastore.txn.service"
_HOUSEKEEPING = (
    "AcidHouseKeeperService",
    "CompactionHouseKeeperService",
    "AcidTxnCleanerService",
    "AcidOpenTxnsCounterService",
)
_COMPILER = JarList("java-compiler", SOURCES / "compiler.sha256")
_LAST_JAR = "reload4j-"  # Tez needs classes of log4j 1; everything else must find log4j 2 before
_OPEN_PACKAGES = (
    *("java.io", "java.lang", "java.lang.invoke", "java.lang.ref", "java.lang.reflect", "java.math", "java.net"),
    *("java.nio", "java.nio.charset", "java.security", "java.text", "java.time", "java.time.format", "java.time.zone"),
    *("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "java.util.regex", "java.util.stream"),
    *("jdk.internal.misc", "jdk.internal.ref", "sun.net.dns", "sun.nio.ch", "sun.nio.cs", "sun.security.action"),
    "sun.util.calendar",
)
_JAVA_BASE = [part for package in _OPEN_PACKAGES for part in ("--add-opens", f"java.base/{package}=ALL-UNNAMED")]


@dataclass(frozen=True)
class EngineProgram:
    """A version of Hive, downloaded and compiled.

    :param classes: folder of what was compiled here.
    :param java: the command that runs it.
    """

    version: str
    distribution: Path
    classes: Path
    java: Path

    def arguments(self, settings: Path, jars: Sequence[Path] = ()) -> list[str]:
        """The arguments of ``java`` before the main class.

        :param settings: folder of the ``*-site.xml`` files.
        :param jars: beside those of the distribution.
        """
        own = _jars(self.version, self.distribution)
        path = os.pathsep.join(map(str, (settings, self.classes / "main", *own, *jars)))
        if self.version == HIVE_3:
            return [*_JAVA_BASE, "-cp", str(self.classes / "launcher"), "Launch", path]
        return [*_JAVA_BASE, "-cp", path]


def engine_program(version: str, work_dir: Path) -> EngineProgram:
    """Downloads a version of Hive where it is not cached, and compiles the few classes of its own.

    :param work_dir: folder that the classes are compiled into.
    :raises ConfigurationError: the compiler fails.
    """
    # The others' metastores have distributions of their own, or no embedded Derby.
    schemas = derby_schema("3.1.0") if version == HIVE_3 else frozenset[str]()
    folder = distribution(JarList(f"hive-engine-{version}", SOURCES / f"jars-{version}.sha256", schemas))
    program = EngineProgram(version, folder, work_dir / "classes", java_21() if version == HIVE_4_2 else find_java())
    own = SOURCES / (version if version == HIVE_3 else "4") / "main"
    _compile(program, "main", [*(SOURCES / "common").glob("*.java"), *own.glob("*.java")])
    if version == HIVE_3:
        _compile(program, "launcher", [SOURCES / version / "launcher" / "Launch.java"])
    return program


def hive_3_metastore_program(program: EngineProgram) -> MetastoreProgram:
    """The metastore of Hive 3, which comes with the engine's jars."""
    return MetastoreProgram(
        distribution=lambda: program.distribution,
        java=lambda _, settings, jars: [
            f"-Dlog4j.configurationFile={settings / 'metastore-log4j2.properties'}",
            *program.arguments(settings, jars),
        ],
        schema_tool="org.apache.hadoop.hive.metastore.tools.MetastoreSchemaTool",
        home_variable="HIVE_HOME",
        databases=DatabaseSupport(HIVE_3, "3.1.0"),
        version_answer="3.0",
        reaper_needs_initiator=True,
        settings={
            "hive.metastore.event.db.notification.api.auth": "false",
            "metastore.stats.fetch.bitvector": "false",
            "hive.metastore.schema.verification": "true",
        },
        main_class="org.apache.hadoop.hive.metastore.LoopbackMetastore",
    )


def hive_4_metastore_program() -> MetastoreProgram:
    """The harness's own metastore, opened for the filters by which the engine asks for partitions."""
    return replace(HIVE_4_METASTORE, java=lambda *places: [*_JAVA_BASE, *class_path_of(*places)])


def later_metastore_program(program: EngineProgram) -> MetastoreProgram:
    """A metastore of Hive 4 which ``hive-exec`` holds.

    It works on PostgreSQL: of 4.1 and 4.2 no schema is packaged, the one of 4.0 is upgraded.
    """
    schema = HIVE_4_ALPHA if program.version == HIVE_4_ALPHA else "4.0.0"
    upgrades = ("upgrade-4.0-to-4.1", "upgrade-4.1-to-4.2")[: {HIVE_4_1: 1, HIVE_4_2: 2}.get(program.version, 0)]
    return replace(
        HIVE_4_METASTORE,
        distribution=lambda: program.distribution,
        java=lambda _, settings, jars: program.arguments(settings, jars),
        databases=replace(HIVE_4_METASTORE.databases, schema_version=schema, upgrades=upgrades),
        version_answer=program.version,
        # By default both name classes of Iceberg, too; where one is missing none of Hive's own threads starts.
        settings={}
        if not upgrades
        else {
            "compactor.table.optimizers": "org.apache.hadoop.hive.ql.txn.compactor.AcidTableOptimizer",
            "metastore.task.threads.remote": ",".join(f"{_TXN_SERVICES}.{name}" for name in _HOUSEKEEPING),
        },
        find_java=lambda: program.java,
    )


def _jars(version: str, folder: Path) -> list[Path]:
    # What hive-exec bundles is older than some jars in Hive 3; what it holds, others hold too, in Hive 4.
    first = "guava-" if version == HIVE_3 else "hive-exec-"

    def place(jar: Path) -> tuple[int, str]:
        return (0 if jar.name.startswith(first) else 2 if jar.name.startswith(_LAST_JAR) else 1), jar.name

    return sorted((folder / "jars").glob("*.jar"), key=place)


def _compile(program: EngineProgram, part: str, sources: list[Path]) -> None:
    """By Eclipse's compiler, which reads classes of a later Java than its own; not every machine has a JDK."""
    target = program.classes / part
    target.mkdir(parents=True, exist_ok=True)
    (compiler,) = (distribution(_COMPILER) / "jars").glob("*.jar")
    command = [
        *(str(program.java), "-jar", str(compiler), "-nowarn", "-proc:none", "-encoding", "UTF-8"),
        *("-source", "17", "-target", "17", "-d", str(target)),
        *("-cp", os.pathsep.join(map(str, (program.distribution / "jars").glob("*.jar"))), *map(str, sources)),
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise ConfigurationError(str(SOURCES), f"the compiler fails: {answer.stderr[-2000:]}", "correct the classes")
