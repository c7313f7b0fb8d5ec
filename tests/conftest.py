"""The servers that several groups of tests share: each is started when first asked for, and ends with the session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.database_server import DatabaseServer
from tests.harness.hdfs_server import HdfsServer
from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import (
    HIVE_3,
    HIVE_4,
    HIVE_4_0_0,
    HIVE_4_1,
    HIVE_4_2,
    HIVE_4_ALPHA,
    engine_program,
    hive_3_metastore_program,
    hive_4_metastore_program,
    later_metastore_program,
)
from tests.harness.java import SHORT_LIVED, spark_options
from tests.harness.mariadb_server import MariaDbServer
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_program import MetastoreProgram
from tests.harness.metastore_server import REAPER_SECONDS, MetastoreServer
from tests.harness.postgres_server import PostgresServer
from tests.harness.s3_server import S3Server, minio_program


@pytest.fixture(scope="session", autouse=True)
def _home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run directories lie below it by default; what is downloaded stays in the real one's cache."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"))
        environment.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _short_lived_sparks() -> Iterator[None]:
    """Each Spark that a test submits works for seconds."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SPARK_SUBMIT_OPTS", " ".join(spark_options()))
        environment.setenv("SPARK_LAUNCHER_OPTS", " ".join(SHORT_LIVED))
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server; whoever uses it makes a database of its own."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDbServer]:
    """A MariaDB server; whoever uses it makes a database of its own."""
    with MariaDbServer() as server:
        yield server


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """A NameNode and a DataNode; whoever uses them makes a directory of its own, and leaves them running."""
    with HdfsServer(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(scope="session")
def hive_3_program(tmp_path_factory: pytest.TempPathFactory) -> MetastoreProgram:
    """The metastore 3.1.3."""
    return hive_3_metastore_program(engine_program(HIVE_3, tmp_path_factory.mktemp("hive-3")))


@pytest.fixture(scope="session")
def hive_3_metastore(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer, hive_3_program: MetastoreProgram
) -> Iterator[MetastoreServer]:
    """Hive 3.1.3 on PostgreSQL, its own reaper, Initiator and Cleaner on; silence counts as death after 300 s."""
    folder = tmp_path_factory.mktemp("hive-3-metastore")
    with _hive_3(folder, hive_3_program, postgres) as server:
        yield server


@pytest.fixture(scope="session")
def reaping_hive_3_metastore(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer, hive_3_program: MetastoreProgram
) -> Iterator[MetastoreServer]:
    """The same with transactions that were silent for :data:`REAPER_SECONDS` aborted."""
    folder = tmp_path_factory.mktemp("reaping-hive-3-metastore")
    with _hive_3(folder, hive_3_program, postgres, REAPER_SECONDS) as server:
        yield server


@pytest.fixture(scope="session")
def hive_3_metastore_on_mariadb(
    tmp_path_factory: pytest.TempPathFactory, mariadb: MariaDbServer, hive_3_program: MetastoreProgram
) -> Iterator[MetastoreServer]:
    """As :func:`hive_3_metastore`, on MariaDB."""
    folder = tmp_path_factory.mktemp("hive-3-metastore")
    with _hive_3(folder, hive_3_program, mariadb) as server:
        yield server


@pytest.fixture(scope="session")
def reaping_hive_3_metastore_on_mariadb(
    tmp_path_factory: pytest.TempPathFactory, mariadb: MariaDbServer, hive_3_program: MetastoreProgram
) -> Iterator[MetastoreServer]:
    """As :func:`reaping_hive_3_metastore`, on MariaDB."""
    folder = tmp_path_factory.mktemp("reaping-hive-3-metastore")
    with _hive_3(folder, hive_3_program, mariadb, REAPER_SECONDS) as server:
        yield server


@pytest.fixture(scope="session")
def hive_4_metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """Hive 4.0.1 on Derby; it leaves dead transactions alone."""
    with MetastoreServer(tmp_path_factory.mktemp("hive-4-metastore"), reaper=False) as server:
        yield server


@pytest.fixture(scope="session")
def reaping_hive_4_metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """The same with transactions that were silent for :data:`REAPER_SECONDS` aborted."""
    folder = tmp_path_factory.mktemp("reaping-hive-4-metastore")
    with MetastoreServer(folder, transaction_timeout_seconds=REAPER_SECONDS, reaper=True) as server:
        yield server


@pytest.fixture(scope="session")
def hive_4_metastore_on_postgres(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer
) -> Iterator[MetastoreServer]:
    """Hive 4.0.1 on PostgreSQL, without a reaper."""
    folder = tmp_path_factory.mktemp("hive-4-metastore")
    database = ServerDatabase(postgres, "hive_4")
    with MetastoreServer(folder, reaper=False, program=hive_4_metastore_program(), database=database) as server:
        yield server


@pytest.fixture(scope="session")
def hive_4_alpha_metastore(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer
) -> Iterator[MetastoreServer]:
    """Hive 4.0.0-alpha-1 on PostgreSQL, with its own threads on."""
    with _by_default(HIVE_4_ALPHA, tmp_path_factory, postgres) as server:
        yield server


@pytest.fixture(scope="session")
def reaping_hive_4_alpha_metastore(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer
) -> Iterator[MetastoreServer]:
    """The same with transactions that were silent for :data:`REAPER_SECONDS` aborted."""
    with _by_default(HIVE_4_ALPHA, tmp_path_factory, postgres, REAPER_SECONDS) as server:
        yield server


@pytest.fixture(scope="session")
def hive_4_0_0_metastore(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer
) -> Iterator[MetastoreServer]:
    """Hive 4.0.0 on PostgreSQL, with its own threads on."""
    with _by_default(HIVE_4_0_0, tmp_path_factory, postgres) as server:
        yield server


@pytest.fixture(scope="session")
def hive_4_1_metastore(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[MetastoreServer]:
    """Hive 4.1.0 on PostgreSQL, with the threads that its default settings start."""
    with _by_default(HIVE_4_1, tmp_path_factory, postgres) as server:
        yield server


@pytest.fixture(scope="session")
def hive_4_2_metastore(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[MetastoreServer]:
    """Hive 4.2.1 on PostgreSQL, with the threads that its default settings start."""
    with _by_default(HIVE_4_2, tmp_path_factory, postgres) as server:
        yield server


@pytest.fixture(scope="session")
def reaping_hive_4_1_metastore(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer
) -> Iterator[MetastoreServer]:
    """As :func:`hive_4_1_metastore`, with transactions that were silent for :data:`REAPER_SECONDS` aborted."""
    with _by_default(HIVE_4_1, tmp_path_factory, postgres, REAPER_SECONDS) as server:
        yield server


@pytest.fixture(scope="session")
def reaping_hive_4_2_metastore(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer
) -> Iterator[MetastoreServer]:
    """As :func:`hive_4_2_metastore`, with transactions that were silent for :data:`REAPER_SECONDS` aborted."""
    with _by_default(HIVE_4_2, tmp_path_factory, postgres, REAPER_SECONDS) as server:
        yield server


@pytest.fixture(scope="session")
def hive_3_engine(tmp_path_factory: pytest.TempPathFactory, hive_3_metastore: MetastoreServer) -> Iterator[HiveEngine]:
    """Hive 3.1.3 itself, for SQL on the tables of :func:`hive_3_metastore`."""
    with HiveEngine(HIVE_3, tmp_path_factory.mktemp("hive-3-engine"), hive_3_metastore) as engine:
        yield engine


@pytest.fixture(scope="session")
def hive_4_engine(
    tmp_path_factory: pytest.TempPathFactory, hive_4_metastore_on_postgres: MetastoreServer
) -> Iterator[HiveEngine]:
    """Hive 4.0.1 itself, for SQL on the tables of :func:`hive_4_metastore_on_postgres`."""
    with HiveEngine(HIVE_4, tmp_path_factory.mktemp("hive-4-engine"), hive_4_metastore_on_postgres) as engine:
        yield engine


@pytest.fixture(scope="session")
def hive_4_1_engine(
    tmp_path_factory: pytest.TempPathFactory, hive_4_1_metastore: MetastoreServer
) -> Iterator[HiveEngine]:
    """Hive 4.1.0 itself, for SQL on the tables of :func:`hive_4_1_metastore`."""
    with HiveEngine(HIVE_4_1, tmp_path_factory.mktemp("hive-4-1-engine"), hive_4_1_metastore) as engine:
        yield engine


@pytest.fixture(scope="session")
def hive_4_2_engine(
    tmp_path_factory: pytest.TempPathFactory, hive_4_2_metastore: MetastoreServer
) -> Iterator[HiveEngine]:
    """Hive 4.2.1 itself, for SQL on the tables of :func:`hive_4_2_metastore`."""
    with HiveEngine(HIVE_4_2, tmp_path_factory.mktemp("hive-4-2-engine"), hive_4_2_metastore) as engine:
        yield engine


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server: MinIO, or moto where Go is missing; whoever uses it makes a bucket of its own."""
    with S3Server(tmp_path_factory.mktemp("s3"), minio_program()) as server:
        yield server


def _by_default(
    version: str, folders: pytest.TempPathFactory, postgres: PostgresServer, timeout_seconds: int = 300
) -> MetastoreServer:
    return MetastoreServer.with_its_threads(
        folders.mktemp(f"hive-{version}-metastore"),
        later_metastore_program(engine_program(version, folders.mktemp("hive-program"))),
        ServerDatabase(postgres, f"hive_{version}_timeout_{timeout_seconds}"),
        timeout_seconds,
    )


def _hive_3(
    folder: Path, program: MetastoreProgram, server: DatabaseServer, timeout_seconds: int = 300
) -> MetastoreServer:
    return MetastoreServer(
        folder,
        transaction_timeout_seconds=timeout_seconds,
        reaper=True,
        program=program,
        database=ServerDatabase(server, f"hive_3_timeout_{timeout_seconds}"),
    )
