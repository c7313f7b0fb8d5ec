"""``airflow-acid compact`` on real metastores, with real Spark where something is merged."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from airflow_provider_acid.command import DATABASE_VARIABLE, INTERRUPTED, MISUSED, UNWELL, WELL, main
from airflow_provider_acid.compaction.run.run_place import RUNS_DIRECTORY
from airflow_provider_acid.metastore.values import CompactionState, TxnState
from tests.harness.spark_sites import LOCAL_SPARK
from tests.integration.compaction_site import ON_BOTH_METASTORES, AcidTable, Site
from tests.integration.kept_tables import is_read_by_all, written
from tests.integration.slow_spark import SlowSpark

PAGE = Path(__file__).parents[2] / "docs" / "doctor.md"
AS_SHOWN = "airflow-acid compact thrift://metastore.example.com:9083 sales.orders "


def shown_options() -> list[str]:
    """Of the command that the page shows, with Spark on this machine in YARN's place."""
    (line,) = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(AS_SHOWN)]
    assert line.count("--master yarn") == 1
    here = line.replace("--master yarn", "--master local[2] --conf spark.ui.enabled=false")
    return shlex.split(here.removeprefix(AS_SHOWN))


def arguments(table: AcidTable, folder: Path, *more: str) -> list[str]:
    server = table.site.server
    address = f"thrift://{server.host}:{server.port}"
    return ["compact", address, str(table.entity()), *more, "--run-directory", folder.as_uri()]


def environment(table: AcidTable) -> Mapping[str, str]:
    return {**LOCAL_SPARK.environment, DATABASE_VARIABLE: table.site.server.database_url or ""}


def compact(table: AcidTable, folder: Path, *more: str) -> int:
    with pytest.MonkeyPatch.context() as changed:
        for name, value in environment(table).items():
            changed.setenv(name, value)
        return main(arguments(table, folder, *more))


def stand_in(folder: Path, text: str) -> str:
    """A program in the place of ``spark-submit``."""
    program = folder / "spark-submit"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o700)
    return shlex.quote(str(program))


@ON_BOTH_METASTORES
def test_a_table_is_compacted_by_spark_and_every_reader_sees_the_same_rows(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = written(site)
    sources, rows = table.visible(), table.rows()
    assert compact(table, tmp_path, *shown_options(), "--type", "major") == WELL
    (result,) = {*table.visible()} - {*sources}
    assert result.startswith("base_")
    assert f"{table.entity()}: compacted: " in capsys.readouterr().out
    assert is_read_by_all(table, rows)
    assert [row.waits_to_be_cleaned for row in site.rows(table.entity())] == [True]
    assert list((tmp_path / RUNS_DIRECTORY).iterdir()) == []


def test_a_dry_run_and_a_table_that_is_not_due_start_nothing_and_change_nothing(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = written(site)
    before = table.fingerprint()
    nothing = ("--spark-submit", stand_in(tmp_path, f"touch {tmp_path}/started"))
    assert compact(table, tmp_path, *nothing) == WELL
    assert "not due: 4 deltas ≤ 10" in capsys.readouterr().out
    assert compact(table, tmp_path, *nothing, "--type", "major", "--dry-run") == WELL
    assert " major " in capsys.readouterr().out
    assert (table.fingerprint(), site.rows(table.entity())) == (before, [])
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("spark_submit", "told"),
    [
        ("no-such-program --master yarn", "no-such-program: is not on the PATH here"),
        ("", "--spark-submit: is empty"),
        ("spark-submit '--master", "--spark-submit: is no command line (No closing quotation)"),
        ("spark-submit --deploy-mode cluster", "--deploy-mode of --spark-submit: is set by the command itself"),
        ("spark-submit --py-files=a.zip", "--py-files=a.zip of --spark-submit: is set by the command itself"),
    ],
)
def test_what_cannot_start_spark_is_refused_before_the_metastore_is_asked(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str], spark_submit: str, told: str
) -> None:
    table = written(site)
    assert compact(table, tmp_path, "--type", "major", "--spark-submit", spark_submit) == MISUSED
    said = capsys.readouterr()
    assert (said.out, told in said.err) == ("", True), said
    assert site.rows(table.entity()) == []


@ON_BOTH_METASTORES
def test_where_spark_does_not_start_the_partition_has_failed_and_is_given_back(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = written(site)
    before, transactions = table.fingerprint(), open_transactions(site)
    options = ("--type", "major", "--spark-submit", f"{stand_in(tmp_path, 'exit 1')} --master yarn")
    assert compact(table, tmp_path, *options) == UNWELL
    assert f"{table.entity()}: failed: " in capsys.readouterr().out
    assert table.fingerprint() == before
    assert not is_in_work(site, table)
    assert open_transactions(site) == transactions


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_terminated_or_hung_up_it_ends_spark_and_gives_everything_back(
    site: Site, tmp_path: Path, how: signal.Signals
) -> None:
    table = written(site)
    before, rows, transactions = table.fingerprint(), table.rows(), open_transactions(site)
    spark = SlowSpark(tmp_path)
    command = arguments(table, tmp_path, "--type", "minor", "--spark-submit", f"{spark.folder}/spark-submit")
    process = psutil.Popen(
        # Whoever runs the tests may have started them with nohup.
        ["env", "--default-signal=HUP", sys.executable, "-m", "airflow_provider_acid", *command],
        env={**os.environ, **environment(table)},
    )
    try:
        spark.wait_until_started()
        process.send_signal(how)
        assert process.wait(60) == INTERRUPTED
    finally:
        if process.is_running():
            process.kill()
    assert spark.ends()
    assert table.fingerprint() == before
    assert is_read_by_all(table, rows)
    assert not is_in_work(site, table)
    assert open_transactions(site) == transactions


def is_in_work(site: Site, table: AcidTable) -> bool:
    return any(row.state in (CompactionState.INITIATED, CompactionState.WORKING) for row in site.rows(table.entity()))


def open_transactions(site: Site) -> set[int]:
    return {txn.id for txn in site.client.transactions() if txn.state is TxnState.OPEN}
