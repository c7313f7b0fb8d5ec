"""Hive 3.1.3: the first base of a partition hides everything from readers that are older and have yet to list.

Hive refuses them (``ACID_NOT_ENOUGH_HISTORY``), as it does beside its own compactor; so they are waited for a while.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.compaction.active import AwaitsReaders
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.work.finishing import Finished
from tests.harness.plain_job import run_plainly
from tests.integration.compaction_site import AcidTable, Site
from tests.integration.hive_3_cleaning import clean, compact, inserts, visible


@pytest.fixture
def site(hive_3_site: Site) -> Site:
    return hive_3_site


def merged(site: Site, table: AcidTable) -> Finished:
    """What comes of a major's result, with its snapshot taken when everybody had begun."""
    active = site.begin(table.entity())
    return site.worker().finish(active, run_plainly(active.plan))


def state_of(finished: Finished) -> OutcomeState:
    assert isinstance(finished, Outcome), finished
    return finished.state


def test_it_appears_when_the_older_readers_are_gone(site: Site) -> None:
    site.settings = replace(site.settings, minor_lock_wait_seconds=60.0)
    table = inserts(site)
    reader = site.reader(table)
    waiting = merged(site, table)
    assert isinstance(waiting, AwaitsReaders)
    assert site.worker().resume(waiting) is waiting
    assert len(visible(table)) == 3
    site.end(reader, site.admin.commit)
    assert state_of(site.worker().resume(waiting)) is OutcomeState.COMPACTED
    assert table.values() == [0, 1, 2]


def test_who_began_after_the_snapshot_is_not_waited_for(site: Site) -> None:
    table = inserts(site)
    active = site.begin(table.entity())
    site.reader(table)
    assert state_of(site.worker().finish(active, run_plainly(active.plan))) is OutcomeState.COMPACTED


def test_it_does_not_wait_for_ever(site: Site) -> None:
    table = inserts(site)
    site.reader(table)
    site.settings = replace(site.settings, minor_lock_wait_seconds=0.0)
    waiting = merged(site, table)
    assert isinstance(waiting, AwaitsReaders)
    assert state_of(site.worker().resume(waiting)) is OutcomeState.COMPACTED


def test_where_a_base_is_there_nobody_is_waited_for(site: Site) -> None:
    """Older readers list that one as long as it is not cleaned, which waits for them."""
    table = inserts(site)
    compact(site, table.entity())
    clean(site, table)
    table.insert(3)
    site.reader(table)
    assert state_of(merged(site, table)) is OutcomeState.COMPACTED
