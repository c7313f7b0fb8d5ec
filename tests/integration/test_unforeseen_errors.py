"""An error that nobody foresaw, after any step: it is the partition's own, loses nothing, and the next run goes on."""

from __future__ import annotations

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.housekeep.housekeeping import Housekeeper
from airflow_provider_acid.compaction.housekeep.report import StuckKind
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.publish.staging import staging_name
from airflow_provider_acid.compaction.steps import Step, StepListener
from airflow_provider_acid.metastore.pools import new_token
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import TableInfo
from airflow_provider_acid.plan.plan import CompactionType
from tests.integration.compaction_site import ON_BOTH_METASTORES, AcidTable, Site, due

STEPS = [
    Step.ENQUEUED,
    Step.TRANSACTION_OPENED,
    Step.STAGED,
    Step.FENCED,
    Step.PUBLISHED,
    Step.COMMITTED,
    Step.MARKED_COMPACTED,
]


def failing_after(step: Step, entity: Entity) -> StepListener:
    def fail(done: Step, of: Entity) -> None:
        if (done, of) == (step, entity):
            raise KeyError("type 5")

    return fail


def inserts(site: Site, name: str = "t") -> AcidTable:
    table = site.table(name)
    for value in range(3):
        table.insert(value)
    return table


def check_ended(table: AcidTable) -> None:
    """Whatever the failed one left: the next run makes one base of it, and its cleaning leaves nothing else."""
    site, entity = table.site, table.entity()
    values = table.values()
    ended = site.compact(entity)
    assert not ended.state.is_failure, ended
    assert all(item.state is CleaningState.CLEANED for item in site.clean(entity))
    site.compact(entity)
    assert all(item.state is CleaningState.CLEANED for item in site.clean(entity))
    assert table.values() == values
    assert len(table.visible()) == 1


@ON_BOTH_METASTORES
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.value)
def test_after_any_step_of_a_compaction_it_is_a_failed_outcome(site: Site, step: Step) -> None:
    table = inserts(site)
    ended = site.compact(table.entity(), on_step=failing_after(step, table.entity()))
    assert ended.state is OutcomeState.FAILED
    assert "KeyError: 'type 5'" in ended.message
    assert table.values() == [0, 1, 2]
    check_ended(table)


def test_between_two_renames_what_was_published_is_left_to_the_next_run(site: Site) -> None:
    """By giving it up, the journal that tells half from whole would be lost."""
    table = inserts(site)
    table.write().delete((1, 0)).commit()
    wanted = due(table.entity(), type=CompactionType.MINOR)
    ended = site.compact(wanted, on_step=failing_after(Step.FIRST_PUBLISHED, table.entity()))
    assert ended.state is OutcomeState.FAILED
    assert "is left to the next run to judge" in ended.message
    assert table.values() == [1, 2]
    check_ended(table)


@ON_BOTH_METASTORES
@pytest.mark.parametrize("step", [Step.CLEANING_DECIDED, Step.FILES_DELETED], ids=lambda step: step.value)
def test_in_a_cleaning_it_fails_one_partition_and_the_others_are_cleaned(site: Site, step: Step) -> None:
    odd, good = inserts(site, "odd"), inserts(site, "good")
    entities = [odd.entity(), good.entity()]
    for entity in entities:
        site.compact(entity)
    found = site.clean(*entities, on_step=failing_after(step, odd.entity()))
    assert {item.entity.table: item.state for item in found} == {
        "odd": CleaningState.FAILED,
        "good": CleaningState.CLEANED,
    }
    assert {item.state for item in site.clean(odd.entity())} == {CleaningState.CLEANED}
    assert odd.values() == good.values() == [0, 1, 2]


def test_in_a_round_of_housekeeping_it_is_a_problem_of_one_table(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    inserts(site, "odd")
    good = inserts(site, "zgood")
    orphan = good.folder() / staging_name(new_token())
    orphan.mkdir()
    get_table = AcidMetastoreClient.get_table

    def fail_at_odd(self: AcidMetastoreClient, database: str, table: str) -> TableInfo:
        if table == "odd":
            raise KeyError("type 5")
        return get_table(self, database, table)

    monkeypatch.setattr(AcidMetastoreClient, "get_table", fail_at_odd)
    keeper = Housekeeper(site.client, site.queue, site.settings, forgotten_seconds=0, max_partitions=10)
    report = keeper.sweep(TableSelection.of([f"{site.database}.*"]))
    problems = [stuck.subject for stuck in report.stuck if stuck.kind is StuckKind.PROBLEM]
    assert problems == [f"{site.database}.odd"]
    assert not orphan.exists()
