"""``airflow-acid plan``, ``airflow-acid clean`` and ``airflow-acid undo`` on real metastores."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_acid import table_commands
from airflow_provider_acid.command import DATABASE_VARIABLE, MISUSED, UNWELL, WELL, main
from tests.integration.compaction_site import ON_BOTH_METASTORES, ON_BOTH_WITH_DATABASE, AcidTable, Site
from tests.integration.kept_tables import compacted, is_read_by_all, written

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "undo.md"


def command_of_the_page(table: AcidTable) -> int:
    """The one that it shows, on this server and table."""
    (line,) = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("airflow-acid ")]
    _, name, _, shown, *arguments = line.split()
    assert shown == "sales.orders"
    return command(name, table, *arguments)


def command(name: str, table: AcidTable, *arguments: str) -> int:
    server = table.site.server
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(DATABASE_VARIABLE, server.database_url or "")
        return main([name, f"thrift://{server.host}:{server.port}", str(table.entity()), *arguments])


@ON_BOTH_METASTORES
def test_a_plan_says_what_would_be_done_and_changes_nothing(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    table = written(site)
    before = table.fingerprint()
    assert command("plan", table) == WELL
    assert "not due: 4 deltas ≤ 10" in capsys.readouterr().out
    assert command("plan", table, "--type", "minor") == WELL
    told = capsys.readouterr().out
    assert (str(table.entity()) in told, " minor " in told) == (True, True), told
    assert (table.fingerprint(), site.rows(table.entity())) == (before, [])


@ON_BOTH_WITH_DATABASE
def test_an_undo_shows_it_in_a_dry_run_does_it_and_says_why_it_cannot(
    keeping: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    table = written(keeping)
    sources, rows = table.visible(), table.rows()
    assert command("undo", table) == UNWELL
    assert "has no compaction on record" in capsys.readouterr().err
    result = compacted(keeping, table)
    assert command_of_the_page(table) == WELL
    assert f"would be taken back: {table.entity()}: {result} of request" in capsys.readouterr().out
    assert table.visible() == sorted([result, *sources])
    assert command("undo", table) == WELL
    assert f"taken back: {table.entity()}: {result} of request" in capsys.readouterr().out
    assert table.visible() == sources
    assert is_read_by_all(table, rows)


KEPT_FOR_NOBODY = ("--keep-replaced-hours", "0", "--retention-seconds", "0")


@ON_BOTH_METASTORES
def test_a_cleaning_is_shown_in_a_dry_run_and_done_without(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    table = written(site)
    rows = table.rows()
    assert command("clean", table, *KEPT_FOR_NOBODY) == WELL
    assert f"nothing of {table.entity()} waits to be cleaned" in capsys.readouterr().out
    result = compacted(site, table)
    files, queue = table.fingerprint(), site.rows(table.entity())
    assert command("clean", table, *KEPT_FOR_NOBODY, "--dry-run") == WELL
    assert f"{table.entity()}: request {queue[-1].id}: would be cleaned: " in capsys.readouterr().out
    assert (table.fingerprint(), site.rows(table.entity())) == (files, queue)
    assert command("clean", table, *KEPT_FOR_NOBODY) == WELL
    assert f"{table.entity()}: request {queue[-1].id}: cleaned: " in capsys.readouterr().out
    assert table.directories() == [result]
    assert is_read_by_all(table, rows)


@ON_BOTH_METASTORES
def test_a_cleaning_waits_for_readers_or_says_what_it_would_wait_for(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = written(site)
    rows = table.rows()
    reader = site.reader(table)
    result = compacted(site, table)
    sources = table.visible()
    for more in ("--dry-run", "--no-wait"):
        assert command("clean", table, *KEPT_FOR_NOBODY, more) == UNWELL
        assert ": waiting: waits for " in capsys.readouterr().out
        assert table.visible() == sources
    looks: list[float] = []
    asleep = time.sleep

    def sleep(seconds: float) -> None:
        if seconds != table_commands.POLL_SECONDS:
            asleep(seconds)
            return
        looks.append(seconds)
        site.end(reader, site.admin.commit)

    monkeypatch.setattr(time, "sleep", sleep)
    assert command("clean", table, *KEPT_FOR_NOBODY) == WELL
    assert looks == [table_commands.POLL_SECONDS]
    assert table.visible() == [result]
    assert is_read_by_all(table, rows)


def test_what_is_kept_for_an_undo_or_by_retention_stays(keeping: Site, capsys: pytest.CaptureFixture[str]) -> None:
    table = written(keeping)
    compacted(keeping, table)
    files = table.fingerprint()
    assert command("clean", table, "--keep-replaced-hours", "48", "--retention-seconds", "0") == WELL
    assert "h more, for an undo" in capsys.readouterr().out
    assert command("clean", table, "--keep-replaced-hours", "0", "--retention-seconds", "900", "--no-wait") == UNWELL
    assert "more (retention)" in capsys.readouterr().out
    assert table.fingerprint() == files


def test_a_table_that_does_not_exist_is_named(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    table = site.table()
    assert command("clean", replace(table, name="ordres"), *KEPT_FOR_NOBODY) == UNWELL
    assert f"{site.database}.ordres" in capsys.readouterr().err


def test_how_long_things_are_kept_at_the_site_has_to_be_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["clean", "thrift://localhost:1", "sales.orders"])
    assert "--keep-replaced-hours, --retention-seconds" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["clean", "sales.*", *KEPT_FOR_NOBODY], "table '*': is not the name of one"),
        (["clean", "sales.orders", *KEPT_FOR_NOBODY, "--partition", "2026"], "is not of the form key=value"),
        (["clean", "sales.orders", "--keep-replaced-hours", "-1", "--retention-seconds", "0"], "--keep-replaced-hours"),
        (["plan", "sales.*"], "table '*': is not the name of one"),
        (["undo", "orders"], "table '': is not the name of one"),
        (["undo", "sales.orders", "--partition", "2026-01-01"], "is not of the form key=value"),
    ],
)
def test_a_name_that_cannot_be_one_is_told_before_anything_is_asked(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *others = arguments
    assert main([name, "thrift://localhost:1", *others]) == MISUSED
    assert told in capsys.readouterr().err
