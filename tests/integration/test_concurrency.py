"""Writers, readers, compactions and cleanings at once for a minute: no reader sees anything but the ledger's rows.

Scenarios W-08, W-20, C-17 and their kin come up by themselves, in whatever order chance brings.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.concurrency.run import TIMEOUT_SECONDS, missing, play, short_run, table_of
from tests.harness.hive_engine_program import HIVE_3, HIVE_4_2, engine_program, later_metastore_program
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_program import MetastoreProgram
from tests.harness.metastore_server import MetastoreServer
from tests.harness.postgres_server import PostgresServer


@pytest.fixture(params=[HIVE_3, HIVE_4_2])
def server(
    request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresServer, hive_3_program: MetastoreProgram
) -> Iterator[MetastoreServer]:
    """A metastore whose own reaper, Initiator and Cleaner are on."""
    version: str = request.param
    program = hive_3_program if version == HIVE_3 else later_metastore_program(engine_program(version, tmp_path))
    database = ServerDatabase(postgres, f"concurrency_{version}")
    with MetastoreServer.with_its_threads(tmp_path / "metastore", program, database, TIMEOUT_SECONDS) as server:
        yield server


def test_whoever_reads_while_others_write_compact_and_clean_reads_the_ledgers_rows(
    server: MetastoreServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = short_run("concurrency", seed=secrets.randbits(32))
    figures = play(run, server, tmp_path / "run")
    with capsys.disabled():
        print(f"\n{table_of(figures, run)}")
    assert missing(figures, run) == []
