"""What a dead attempt published is all that is left of its rows: it stays until somebody helps."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.metastore.values import CompactionState, TxnState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness import the_hive_4
from tests.harness.compaction_chain import Chain, run_until_killed
from tests.integration.compaction_site import AcidTable, Site

DEAD_AT_ONCE = 0.001


@pytest.fixture
def table(site: Site) -> AcidTable:
    """Two inserts and a delete."""
    table = site.table()
    first = table.insert(1, 2)
    table.insert(3)
    table.write().delete((first.id, 0)).commit()
    return table


@pytest.mark.parametrize("type", CompactionType)
@pytest.mark.parametrize(
    ("site", "state"),
    [("hive_4", TxnState.OPEN), (the_hive_4.NAME, TxnState.OPEN), (the_hive_4.NAME, TxnState.ABORTED)],
    indirect=["site"],
)
def test_the_last_copy_stays_with_its_transaction_until_its_sources_are_back(
    site: Site, table: AcidTable, type: CompactionType, state: TxnState, tmp_path: Path
) -> None:
    sources, before = table.visible(), table.rows()
    chain = Chain.on(site.server, table.entity(), type=type)
    run_until_killed(chain, "published")
    (row,) = site.rows(table.entity())
    dead = row.txn_id
    assert dead is not None
    if state is TxnState.ABORTED:
        site.admin.abort(dead)
    published = set(table.visible()) - set(sources)
    assert published == {name for name in table.visible() if name.endswith(f"_v{dead:07d}")} != set()
    moved(table.folder(), tmp_path, sources)

    for attempt in (chain, chain.another_run().with_timeout(DEAD_AT_ONCE)):
        outcome = attempt.compact().outcome
        assert outcome.state is OutcomeState.REFUSED
        assert f"is all that is left of its rows, though transaction {dead} never committed it" in outcome.message
        attempt.clean()
        assert set(table.visible()) == published
        assert site.client.transaction_state(dead) is state
        assert not site.row(row.id).state.is_terminal

    moved(tmp_path, table.folder(), sources)
    assert table.rows() == before
    assert chain.compact().outcome.state is OutcomeState.COMPACTED
    assert site.row(row.id).state is CompactionState.FAILED
    assert table.rows() == before
    assert not published & set(table.visible())


@pytest.mark.parametrize("type", CompactionType)
def test_its_rows_are_back_once_it_is_renamed_as_the_error_says(
    site: Site, table: AcidTable, type: CompactionType
) -> None:
    sources, before = table.visible(), table.rows()
    chain = Chain.on(site.server, table.entity(), type=type)
    run_until_killed(chain, "published")
    for name in sources:
        shutil.rmtree(table.folder() / name)
    assert table.rows() == {}
    outcome = chain.compact().outcome
    suffix = re.search(r"rename each without its suffix (_v\d+)", outcome.message)
    assert suffix, outcome
    for name in table.visible():
        (table.folder() / name).rename(table.folder() / name.removesuffix(suffix[1]))
    assert table.rows() == before
    assert not chain.compact().outcome.state.is_failure
    assert table.rows() == before


def moved(here: Path, there: Path, names: list[str]) -> None:
    for name in names:
        shutil.move(here / name, there / name)
