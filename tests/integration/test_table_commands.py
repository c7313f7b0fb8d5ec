"""``airflow-acid plan`` and ``airflow-acid undo`` on real metastores."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_acid.command import DATABASE_VARIABLE, MISUSED, UNWELL, WELL, main
from tests.integration.compaction_site import ON_BOTH_METASTORES, AcidTable, Site
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


@ON_BOTH_METASTORES
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


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["plan", "sales.*"], "table '*': is not the name of one"),
        (["undo", "orders"], "table '': is not the name of one"),
        (["undo", "sales.orders", "--partition", "2026-01-01"], "is not of the form key=value"),
    ],
    ids=["pattern", "no database", "partition"],
)
def test_a_name_that_cannot_be_one_is_told_before_anything_is_asked(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *others = arguments
    assert main([name, "thrift://localhost:1", *others]) == MISUSED
    assert told in capsys.readouterr().err
