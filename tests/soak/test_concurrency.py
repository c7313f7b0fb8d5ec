"""Ten minutes of everything at once on each metastore, a real Hive among the writers and readers."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.harness.concurrency.hive_session import HiveSession
from tests.harness.concurrency.run import TIMEOUT_SECONDS, long_run, missing, play, table_of
from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import HIVE_3, HIVE_4, hive_4_metastore_program
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_program import MetastoreProgram
from tests.harness.metastore_server import MetastoreServer
from tests.harness.postgres_server import PostgresServer


@pytest.fixture(params=[HIVE_3, HIVE_4])
def hive(
    request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresServer, hive_3_program: MetastoreProgram
) -> Iterator[HiveEngine]:
    """Hive on a metastore whose own reaper, and on Hive 3 its Initiator and Cleaner, are on."""
    version: str = request.param
    server = MetastoreServer(
        tmp_path / "metastore",
        transaction_timeout_seconds=TIMEOUT_SECONDS,
        reaper=True,
        program=hive_3_program if version == HIVE_3 else hive_4_metastore_program(),
        database=ServerDatabase(postgres, f"long_concurrency_{version[0]}"),
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
