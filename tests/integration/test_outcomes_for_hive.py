"""What Hive makes of outcomes that are no failures: its Initiator gives up a partition that failed twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.failures import FAILED_COMPACTIONS_THRESHOLD
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.thresholds import ENROLLED
from tests.harness.compaction_chain import wait_until
from tests.integration.compaction_site import ON_BOTH_METASTORES, AcidTable, Site, due

REFUSED = {True: CompactionState.DID_NOT_INITIATE, False: CompactionState.REFUSED}
"""How Hive 3, and how Hive 4, shows what was not carried out."""
LEFT_TO_HIVE = {
    ENROLLED: "false",
    "no_auto_compaction": "false",
    "compactorthreshold.hive.compactor.delta.num.threshold": "1",
}


def shown(client: AcidMetastoreClient, entity: Entity) -> list[CompactionState]:
    """States in SHOW COMPACTIONS, the newest first."""
    return [row.state for row in reversed(client.compactions(entity=entity))]


def hive_gives_up(states: list[CompactionState]) -> bool:
    """``checkFailedCompactions`` of Hive 3.1.3 and 4.0.1: of the last ones, but for those not initiated, all failed."""
    counted = [state for state in states if state is not CompactionState.DID_NOT_INITIATE]
    last = counted[:FAILED_COMPACTIONS_THRESHOLD]
    return sum(1 if state is CompactionState.FAILED else -1 for state in last) == FAILED_COMPACTIONS_THRESHOLD


@ON_BOTH_METASTORES
def test_nothing_to_merge_is_no_failure(site: Site) -> None:
    table = site.table()
    table.insert(1)
    for _ in range(FAILED_COMPACTIONS_THRESHOLD):
        assert site.compact(table.entity()).state is OutcomeState.NOTHING_TO_MERGE
    states = shown(site.client, table.entity())
    assert states == [REFUSED[site.renames_publish]] * FAILED_COMPACTIONS_THRESHOLD
    assert not hive_gives_up(states)


@ON_BOTH_METASTORES
def test_a_users_request_with_nothing_to_merge_is_no_failure(site: Site) -> None:
    site.withdraw_requests()
    table = site.table()
    table.insert(1)
    for _ in range(FAILED_COMPACTIONS_THRESHOLD):
        request = site.client.compact(table.entity(), CompactionType.MINOR)
        assert site.compact(due(table.entity(), request.id)).state is OutcomeState.NOTHING_TO_MERGE
    assert not hive_gives_up(shown(site.client, table.entity()))


@pytest.fixture
def impatient(site: Site) -> Site:
    site.settings = replace(site.settings, minor_lock_wait_seconds=0.3, minor_pairs_on_hive_3=True)
    return site


def inserts_and_deletes(site: Site) -> AcidTable:
    table = site.table()
    first = table.write()
    first.insert(1, 2).commit()
    table.write().delete((first.id, 0)).commit()
    table.insert(3)
    return table


@ON_BOTH_METASTORES
def test_a_minor_that_fell_back_is_no_failure_and_its_major_stands_for_itself(impatient: Site) -> None:
    site = impatient
    table = inserts_and_deletes(site)
    reader = site.reader(table)
    outcome = site.compact(due(table.entity(), type=CompactionType.MINOR))
    assert outcome.state is OutcomeState.COMPACTED
    assert "done as a major" in outcome.message
    fell_back = REFUSED[site.renames_publish]
    assert shown(site.client, table.entity())[1:] == [fell_back]
    site.end(reader, site.admin.commit)
    site.clean(table.entity())
    assert shown(site.client, table.entity()) == [CompactionState.SUCCEEDED, fell_back]


def test_hives_own_initiator_goes_on_asking(hive_3_site: Site) -> None:
    site = hive_3_site
    table = site.table()
    table.insert(1)
    for _ in range(FAILED_COMPACTIONS_THRESHOLD):
        assert site.compact(table.entity()).state is OutcomeState.NOTHING_TO_MERGE
    site.set_properties(table, LEFT_TO_HIVE)
    for value in (2, 3):
        table.insert(value)
    wait_until(lambda: CompactionState.INITIATED in shown(site.client, table.entity()))
    site.withdraw_requests()
