"""Whoever takes over from a dead or sleeping attempt: what it adopts, what it removes, and that sleepers do no harm."""

from __future__ import annotations

import shutil
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.facts import load_facts
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.publish.staging import REMOVED_PREFIX, STAGING_PREFIX, FinishedOutput
from airflow_provider_acid.compaction.recover.recovered_partition import DIED, RecoveredPartition
from airflow_provider_acid.compaction.recover.recovery import Recovery
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState, TxnState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.compaction_chain import Chain, ChainProcess, outcome_of, run_until_killed
from tests.harness.crash_case import OWNED_STEPS
from tests.harness.plain_job import run_plainly
from tests.integration.compaction_site import AcidTable, Site, due

DEAD_AT_ONCE = 0.001


@pytest.fixture
def table(site: Site) -> AcidTable:
    """Three inserts: values 1 to 4."""
    table = site.table()
    for values in ((1, 2), (3,), (4,)):
        table.insert(*values)
    return table


def chain_for(table: AcidTable, request_id: int | None = None) -> Chain:
    return replace(Chain.on(table.site.server, table.entity()), request_id=request_id)


def rows_of(table: AcidTable) -> list[CompactionRow]:
    return table.site.rows(table.entity())


def check_one_base(table: AcidTable, *values: int) -> None:
    """After cleaning nothing but one base is left, which every kind of reader reads right, and nobody waits."""
    site = table.site
    site.clean(table.entity())
    (name,) = table.directories()
    assert name.startswith("base_")
    for check_visibility in (True, False):
        assert sorted(table.rows(check_visibility=check_visibility).values()) == list(values)
    assert all(row.state.is_terminal for row in rows_of(table)), rows_of(table)
    assert not site.admin.transactions().open - site.open_txns


@pytest.mark.parametrize("step", ["verified", "fenced"])
def test_finished_output_is_adopted_while_nothing_changed(table: AcidTable, step: str) -> None:
    run_until_killed(chain_for(table), step)
    again = chain_for(table).compact()
    assert (again.outcome.state, again.merged) == (OutcomeState.COMPACTED, False)
    check_one_base(table, 1, 2, 3, 4)


def test_a_new_delta_is_merged_anew(table: AcidTable) -> None:
    run_until_killed(chain_for(table), "verified")
    table.insert(5)
    again = chain_for(table).compact()
    assert (again.outcome.state, again.merged) == (OutcomeState.COMPACTED, True)
    check_one_base(table, 1, 2, 3, 4, 5)


def test_a_write_that_aborts_meanwhile_is_merged_anew(table: AcidTable) -> None:
    undecided = table.write().insert(99)
    run_until_killed(chain_for(table), "verified")
    undecided.abort()
    again = chain_for(table).compact()
    assert (again.outcome.state, again.merged) == (OutcomeState.COMPACTED, True)
    check_one_base(table, 1, 2, 3, 4)


@pytest.mark.parametrize("step", ["recovered", "staged", "fenced", "published"])
def test_the_adopter_may_die_too(table: AcidTable, step: str) -> None:
    run_until_killed(chain_for(table), "fenced")
    run_until_killed(chain_for(table), step)
    assert table.values() == [1, 2, 3, 4]
    again = chain_for(table).compact()
    assert (again.outcome.state, again.merged) == (OutcomeState.COMPACTED, step == "published")
    check_one_base(table, 1, 2, 3, 4)


def test_a_base_that_an_adopter_published_in_vain_is_removed(table: AcidTable) -> None:
    """Its name tells the adopter's transaction, the plan beside it that of the attempt it was adopted from."""
    run_until_killed(chain_for(table), "fenced")
    run_until_killed(chain_for(table), "published")
    chain_for(table).compact()
    assert len([name for name in table.directories() if name.startswith("base_")]) == 1


def test_output_that_nobody_needs_any_more_is_removed(table: AcidTable) -> None:
    """The dead attempt's work was done by somebody else meanwhile, here by a table of one delta."""
    run_until_killed(chain_for(table), "verified")
    for name in table.directories():
        if name.startswith("delta_") and not name.startswith("delta_0000001"):
            shutil.rmtree(table.folder() / name)
    outcome = chain_for(table).compact().outcome
    assert outcome.state is OutcomeState.NOTHING_TO_MERGE
    assert table.directories() == ["delta_0000001_0000001_0000"]


@pytest.mark.parametrize("successor", ["next try", "next run"])
@pytest.mark.parametrize("step", [*OWNED_STEPS, "committed"])
def test_a_sleeper_that_wakes_up_after_its_successor_does_no_harm(table: AcidTable, step: str, successor: str) -> None:
    chain = chain_for(table)
    heir = chain.next_try() if successor == "next try" else chain.another_run().with_timeout(DEAD_AT_ONCE)
    with closing(ChainProcess(chain, step, signal.SIGSTOP)) as sleeper:
        sleeper.wait_until_asleep()
        assert heir.compact().outcome.state is OutcomeState.COMPACTED
        directories = table.directories()
        woken = sleeper.wake()
        assert woken.state is (OutcomeState.COMPACTED if step == "committed" else OutcomeState.FAILED), woken
    assert [name for name in directories if name.startswith("base_")] == [
        name for name in table.directories() if name.startswith("base_")
    ]
    assert table.values() == [1, 2, 3, 4]
    check_one_base(table, 1, 2, 3, 4)


@pytest.mark.parametrize("step", ["fenced", "published"])
def test_nobody_ever_finds_half_of_what_a_successor_removes(
    table: AcidTable, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A zombie could still rename half an output, a reader that ignores transactions read half a base."""
    run_until_killed(chain_for(table), step)
    table.insert(5)  # the output is not adopted
    remove = shutil.rmtree
    removed: list[str] = []

    def remove_slowly(victim: str, **options: Any) -> None:
        removed.append(Path(victim).name)
        next(file for file in Path(victim).rglob("*") if file.is_file()).unlink()
        for check_visibility in (True, False):
            assert sorted(table.rows(check_visibility=check_visibility).values()) == [1, 2, 3, 4, 5]
        remove(victim, **options)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", remove_slowly)
        assert chain_for(table).compact().outcome.state is OutcomeState.COMPACTED
    names = [name for name in removed if name.startswith(REMOVED_PREFIX)]
    assert len(names) == {"fenced": 1, "published": 2}[step]
    check_one_base(table, 1, 2, 3, 4, 5)


def test_of_two_that_take_over_one_after_the_other_none_fails(table: AcidTable) -> None:
    """The second does all of its work after the first has found the finished output."""
    run_until_killed(chain_for(table), "fenced")
    others: list[Outcome] = []

    def others_turn(step: Step, _: Entity) -> None:
        if step is Step.RECOVERED:
            others.append(chain_for(table).another_run().with_timeout(DEAD_AT_ONCE).compact().outcome)

    outcome = chain_for(table).compact(others_turn).outcome
    assert [other.state for other in others] == [OutcomeState.COMPACTED]
    assert not outcome.state.is_failure, outcome
    check_one_base(table, 1, 2, 3, 4)


def test_who_loses_a_finished_output_to_another_recovery_merges_anew(table: AcidTable) -> None:
    run_until_killed(chain_for(table), "fenced")
    site = table.site
    pool = RequestPool.new(owner_of("another task", str(table.entity())))
    found: list[object] = []

    def steal(step: Step, _: Entity) -> None:
        if step is Step.RECOVERED:
            facts = load_facts(site.client, table.entity())
            found.append(Recovery(site.client, site.queue, site.settings).recover(facts, pool))

    again = chain_for(table).compact(steal)
    assert isinstance(found[0], FinishedOutput)
    assert (again.outcome.state, again.merged) == (OutcomeState.COMPACTED, True)
    assert table.values() == [1, 2, 3, 4]


def test_of_two_that_take_over_at_once_one_compacts_and_none_fails(table: AcidTable) -> None:
    run_until_killed(chain_for(table), "fenced")
    chains = [replace(chain_for(table), identity=f"run {number}").with_timeout(300) for number in range(2)]
    (row,) = rows_of(table)
    table.site.admin.abort(row.txn_id or 0)
    start = threading.Barrier(2)

    def compact(chain: Chain) -> Outcome:
        start.wait()
        return chain.compact().outcome

    with ThreadPoolExecutor(2) as threads:
        outcomes = list(threads.map(compact, chains))
    assert not [outcome for outcome in outcomes if outcome.state.is_failure], outcomes
    assert OutcomeState.COMPACTED in {outcome.state for outcome in outcomes}
    check_one_base(table, 1, 2, 3, 4)


def test_a_removal_that_was_cut_off_is_finished(table: AcidTable) -> None:
    leftover = table.folder() / f"{REMOVED_PREFIX}0123" / "output"
    leftover.mkdir(parents=True)
    assert chain_for(table).compact().outcome.state is OutcomeState.COMPACTED
    check_one_base(table, 1, 2, 3, 4)


def test_the_staging_of_an_attempt_that_begins_meanwhile_is_left_alone(table: AcidTable) -> None:
    site = table.site
    begun: list[ActiveCompaction] = []

    class LateRecovery(Recovery):
        def _recover_staging(self, partition: RecoveredPartition) -> tuple[FinishedOutput | None, Listing | None]:
            # Who is alive was asked before, as where there was something on record.
            assert partition.attempts.transactions is not None
            begun.append(site.begin(table.entity(), "another task"))
            return super()._recover_staging(partition)

    pool = RequestPool.new(owner_of("task", str(table.entity())))
    found = LateRecovery(site.client, site.queue, site.settings).recover(load_facts(site.client, table.entity()), pool)
    assert found is None
    (active,) = begun
    assert active.plan.staging in table.directories()
    assert outcome_of(site.worker().finish(active, run_plainly(active.plan))).state is OutcomeState.COMPACTED
    check_one_base(table, 1, 2, 3, 4)


@pytest.mark.parametrize("step", ["claimed", "transaction_opened", "recorded", "staged", "verified", "published"])
def test_a_request_of_somebody_else_is_served_by_the_next_try(table: AcidTable, step: str) -> None:
    answer = table.site.client.compact(table.entity(), CompactionType.MAJOR)
    chain = chain_for(table, request_id=answer.id)
    run_until_killed(chain, step)
    assert chain.compact().outcome.state is OutcomeState.COMPACTED
    message = str(table.site.row(answer.id).error_message)
    assert message.startswith(DIED)
    check_one_base(table, 1, 2, 3, 4)


def test_a_request_of_somebody_else_that_is_committed_is_made_ready_by_the_next_try(table: AcidTable) -> None:
    answer = table.site.client.compact(table.entity(), CompactionType.MAJOR)
    chain = chain_for(table, request_id=answer.id)
    run_until_killed(chain, "committed")
    outcome = chain.compact().outcome
    assert (outcome.state, outcome.request_id) == (OutcomeState.COMPACTED, answer.id)
    assert table.site.row(answer.id).state is CompactionState.READY_FOR_CLEANING
    # Its row does not tell whose the staging directory was, which a recovery or the housekeeping removes.
    chain.clean()
    assert chain_for(table).compact().outcome.state is OutcomeState.NOTHING_TO_MERGE
    check_one_base(table, 1, 2, 3, 4)


@pytest.mark.parametrize("who", ["next try", "another run", "cleaner of another run"])
def test_what_a_dead_attempt_committed_is_made_ready_and_cleaned(table: AcidTable, who: str) -> None:
    chain = chain_for(table)
    heir = chain.next_try() if who == "next try" else chain.another_run()
    run_until_killed(chain, "committed")
    (row,) = rows_of(table)
    assert (row.state, row.commit_ms is None) == (CompactionState.WORKING, False)
    if who != "cleaner of another run":
        compacted = heir.compact()
        assert (compacted.outcome.state, compacted.merged) == (OutcomeState.COMPACTED, False)
        assert f"made request {row.id} ready for cleaning" in compacted.outcome.message
        now = table.site.row(row.id)
        assert (now.state, now.commit_ms) == (CompactionState.READY_FOR_CLEANING, row.commit_ms)
        assert (now.txn_id, now.next_txn_id, now.highest_write_id) == (row.txn_id, row.next_txn_id, 3)
    (cleaning,) = heir.clean()
    assert cleaning.state is CleaningState.CLEANED
    assert table.site.row(row.id).state is CompactionState.SUCCEEDED
    check_one_base(table, 1, 2, 3, 4)


def ready_row(table: AcidTable) -> CompactionRow:
    (row,) = rows_of(table)
    assert (row.state, row.commit_ms) == (CompactionState.READY_FOR_CLEANING, None)
    return row


def die_marked_before_the_commit(table: AcidTable) -> CompactionRow:
    """As an attempt of a release that marked first; its row."""
    run_until_killed(chain_for(table), "published")
    (row,) = rows_of(table)
    table.site.client.mark_compacted(CompactionInfo.of_row(row))
    return ready_row(table)


@pytest.mark.parametrize("is_aborted", [True, False])
def test_a_ready_row_that_was_never_committed_is_failed_and_its_base_removed(
    table: AcidTable, is_aborted: bool
) -> None:
    row = die_marked_before_the_commit(table)
    if is_aborted:
        table.site.admin.abort(row.txn_id or 0)
    before = [name for name in table.directories() if name.startswith("delta_")]
    assert chain_for(table).with_timeout(DEAD_AT_ONCE).clean() == ()
    assert table.site.client.transaction_state(row.txn_id or 0) is TxnState.ABORTED
    now = table.site.row(row.id)
    assert now.state is CompactionState.FAILED
    assert str(now.error_message).startswith(DIED)
    assert [name for name in table.directories() if not name.startswith(STAGING_PREFIX)] == before
    assert table.values() == [1, 2, 3, 4]
    chain_for(table).compact()
    check_one_base(table, 1, 2, 3, 4)


def test_a_ready_row_of_a_living_owner_is_left_alone(table: AcidTable) -> None:
    row = die_marked_before_the_commit(table)
    before = table.fingerprint()
    assert chain_for(table).with_timeout(300).clean() == ()
    assert ready_row(table) == row
    assert table.site.client.transaction_state(row.txn_id or 0) is TxnState.OPEN
    assert table.fingerprint() == before
    table.site.admin.commit(row.txn_id or 0)


def test_one_dead_partition_of_a_batch_does_not_hold_up_the_others(site: Site) -> None:
    table = site.table("p", partitions=["p=1", "p=2"])
    for partition in ("p=1", "p=2"):
        for value in (1, 2):
            table.insert(value, partition=partition)
    run_until_killed(Chain.on(site.server, table.entity("p=1"), "another run"), "fenced")
    worker = site.worker("this run")
    first = worker.begin(due(table.entity("p=1")))
    second = worker.begin(due(table.entity("p=2")))
    assert not isinstance(first, ActiveCompaction)
    assert first.state is OutcomeState.SKIPPED
    assert isinstance(second, ActiveCompaction)
    assert outcome_of(worker.finish(second, run_plainly(second.plan))).state is OutcomeState.COMPACTED
    (row,) = [row for row in site.rows(table.entity("p=1")) if not row.state.is_terminal]
    site.admin.abort(row.txn_id or 0)
