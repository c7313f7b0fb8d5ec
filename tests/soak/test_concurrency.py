"""Ten minutes of everything at once on each metastore, a real Hive among the writers and readers."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from tests.harness.concurrency.hive_session import HiveSession
from tests.harness.concurrency.run import TIMEOUT_SECONDS, long_run, missing, play, table_of
from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import (
    HIVE_3,
    HIVE_4,
    HIVE_4_1,
    HIVE_4_2,
    EngineProgram,
    engine_program,
    hive_3_metastore_program,
    hive_4_metastore_program,
    later_metastore_program,
)
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_program import MetastoreProgram
from tests.harness.metastore_server import MetastoreServer
from tests.harness.postgres_server import PostgresServer

PROGRAMS: Mapping[str, Callable[[EngineProgram], MetastoreProgram]] = {
    HIVE_3: hive_3_metastore_program,
    HIVE_4: lambda _: hive_4_metastore_program(),
    HIVE_4_1: later_metastore_program,
    HIVE_4_2: later_metastore_program,
}


@pytest.fixture(params=PROGRAMS)
def hive(request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresServer) -> Iterator[HiveEngine]:
    """Hive on a metastore whose own reaper, Initiator and Cleaner are on."""
    version: str = request.param
    server = MetastoreServer.with_its_threads(
        tmp_path / "metastore",
        PROGRAMS[version](engine_program(version, tmp_path)),
        ServerDatabase(postgres, f"long_concurrency_{version}"),
        TIMEOUT_SECONDS,
    )
    with server, HiveEngine(version, tmp_path / "hive", server) as engine:
        yield engine


def test_a_real_hive_and_all_others_read_the_ledgers_rows(
    hive: HiveEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = long_run("concurrency", seed=secrets.randbits(32))
    figures = play(run, hive.metastore, tmp_path / "run", partial(HiveSession, engine=hive))
    with capsys.disabled():
        print(f"\n{table_of(figures, run)}")
    assert missing(figures, run) == []
