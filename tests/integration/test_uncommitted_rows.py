"""From the publication until it is ready for cleaning a result is no business of Hive's own Cleaner."""

from __future__ import annotations

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.compaction_chain import wait_until
from tests.integration.compaction_site import Site, StepRecorder


class Died(BaseException):
    """The worker is no more."""


def let_hives_cleaner_look(site: Site) -> None:
    """Wait until it has dealt with a row that only it takes: one of a table that is gone."""
    query = site.server.server_database.query
    asked = site.client.compact(Entity(site.database, "gone", "p=1"), CompactionType.MAJOR).id
    query(
        'UPDATE "COMPACTION_QUEUE" SET "CQ_STATE" = \'r\', "CQ_HIGHEST_WRITE_ID" = 1, "CQ_NEXT_TXN_ID" = 1, '
        f'"CQ_COMMIT_TIME" = 1 WHERE "CQ_ID" = {asked}'
    )
    wait_until(lambda: query(f'SELECT 1 FROM "COMPACTION_QUEUE" WHERE "CQ_ID" = {asked}') == [])


@pytest.mark.parametrize("site", ["hive_4_alpha", "hive_4_1", "hive_4_2"], indirect=True)
def test_hives_own_cleaner_never_takes_a_row_of_ours(site: Site) -> None:
    """Nor does such a row, which may wait for a dead worker's transaction to end, keep it from its other work."""
    table = site.table()
    table.insert(1)
    table.insert(2)
    first = site.compact(table.entity())
    assert first.state is OutcomeState.COMPACTED, first
    table.write().insert(3).abort()
    table.insert(4)
    kept, rows = table.visible(), table.rows()
    seen: dict[Step, CompactionState] = {}

    def look(step: Step) -> None:
        if step in (Step.PUBLISHED, Step.COMMITTED, Step.MARKED_COMPACTED):
            let_hives_cleaner_look(site)
            (row,) = (row for row in site.rows(table.entity()) if row.id != first.request_id)
            seen[step] = row.state
            assert set(kept) <= set(table.visible()), step
            assert table.rows() == rows, step
        if step is Step.MARKED_COMPACTED:
            raise Died

    with pytest.raises(Died):
        site.compact(table.entity(), on_step=StepRecorder(look))
    assert seen == {
        Step.PUBLISHED: CompactionState.WORKING,
        Step.COMMITTED: CompactionState.WORKING,
        Step.MARKED_COMPACTED: CompactionState.READY_FOR_CLEANING,
    }
