"""Writers, readers, compactions, cleanings and undos at once for a minute: nobody reads but the rows of the ledger.

Scenarios W-08, W-20, C-17 and their kin come up by themselves, in whatever order chance brings.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness.concurrency.run import TIMEOUT_SECONDS, missing, play, short_run, table_of
from tests.harness.hive_engine_program import HIVE_3, HIVE_4_2, engine_program, later_metastore_program
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_program import MetastoreProgram
from tests.harness.metastore_server import MetastoreServer
from tests.harness.postgres_server import PostgresServer

MUST_HAPPEN = {HIVE_3: ("undos done",), HIVE_4_2: ()}
"""On Hive 4 an undo is refused where aborted writes are on record, and here they nearly always are."""


@pytest.fixture
def server(
    version: str, tmp_path: Path, postgres: PostgresServer, hive_3_program: MetastoreProgram
) -> Iterator[MetastoreServer]:
    """A metastore whose own reaper, Initiator and Cleaner are on."""
    program = hive_3_program if version == HIVE_3 else later_metastore_program(engine_program(version, tmp_path))
    database = ServerDatabase(postgres, f"concurrency_{version}")
    with MetastoreServer.with_its_threads(tmp_path / "metastore", program, database, TIMEOUT_SECONDS) as server:
        yield server


@pytest.mark.parametrize("version", MUST_HAPPEN)
def test_whoever_reads_while_others_write_compact_clean_and_undo_reads_the_ledgers_rows(
    version: str, server: MetastoreServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = short_run("concurrency", seed=secrets.randbits(32))
    run = replace(run, must_happen=(*run.must_happen, *MUST_HAPPEN[version]))
    figures = play(run, server, tmp_path / "run")
    with capsys.disabled():
        print(f"\n{table_of(figures, run)}")
    assert missing(figures, run) == []
