"""Whatever dies in an undo, or works beside it, and whenever: readers read the right rows, and it can be ended."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.housekeep.undo import Undo
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.publish.discard import Discard
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.exceptions import OwnershipLostError
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.hive3.queue import SqlCompactionQueue
from airflow_provider_acid.metastore.hive4.queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.storages.local import LocalStorage
from tests.integration.compaction_site import ON_BOTH_WITH_DATABASE, AcidTable, Site
from tests.integration.kept_tables import compacted, is_read_by_all, undo, written

AT_ONCE = 0.001

STEPS: dict[str, tuple[tuple[type, ...], str]] = {
    "request": ((SqlCompactionQueue, ThriftCompactionQueue), "refuse"),
    "rename": ((Discard,), "take"),
    "flush": ((LocalStorage,), "flush"),
    "emptying": ((Discard,), "empty"),
    "write id": ((CompactionTransaction,), "allocate_write_id"),
    "commit": ((CompactionTransaction,), "commit"),
}
"""What an undo does, in this order, and by which method."""


def undo_until_killed(site: Site, step: str, *, after: bool) -> None:
    """An undo in a process of its own, which is killed right before a step, or right after it."""

    def deadly(method: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: Any, **options: Any) -> object:
            if after:
                method(*arguments, **options)
            os.kill(os.getpid(), signal.SIGKILL)
            return None

        return call

    def run(there: Site) -> None:
        classes, name = STEPS[step]
        for one in classes:
            setattr(one, name, deadly(getattr(one, name)))
        Undo(there.client, there.queue, there.settings).undo(Entity(there.database, "t"))

    in_a_process_that_dies(site, run)


def in_a_process_that_dies(site: Site, work: Callable[[Site], None]) -> None:
    """Done with connections of its own, until it is killed."""

    def run() -> None:
        url = site.server.database_url
        database = None if url is None else MetastoreDatabase(url)
        with AcidMetastoreClient([MetastoreAddress(site.server.host, site.server.port)], user="tester") as client:
            work(replace(site, client=client, hive_database=database))

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


DEATHS = pytest.mark.parametrize(
    ("step", "after"), [(step, after) for step in STEPS for after in (False, True)], ids=lambda value: str(value)
)


@DEATHS
@ON_BOTH_WITH_DATABASE
def test_the_next_undo_ends_what_a_dead_one_began(keeping: Site, step: str, after: bool) -> None:
    site, table = keeping, written(keeping)
    sources, rows = table.visible(), table.rows()
    compacted(site, table)
    undo_until_killed(site, step, after=after)
    assert is_read_by_all(table, rows)
    site.settings = replace(site.settings, transaction_timeout_seconds=AT_ONCE)
    undo(site, table)
    assert is_read_by_all(table, rows)
    assert table.visible() == sources
    assert [row for row in site.rows(table.entity()) if not row.state.is_terminal] == []


@DEATHS
@ON_BOTH_WITH_DATABASE
def test_what_is_compacted_and_cleaned_after_a_dead_undo_holds_the_same_rows(
    keeping: Site, step: str, after: bool
) -> None:
    site, table = keeping, written(keeping)
    rows = table.rows()
    compacted(site, table)
    undo_until_killed(site, step, after=after)
    for txn in site.client.open_transactions().open:
        site.client.abort(txn)
    site.settings = replace(site.settings, transaction_timeout_seconds=AT_ONCE, keep_replaced_hours=0.0)
    site.clean(table.entity())
    assert is_read_by_all(table, rows)
    added = table.insert(6)
    outcome = site.compact(table.entity())
    assert outcome.state is OutcomeState.COMPACTED, outcome
    assert {cleaning.state for cleaning in site.clean(table.entity())} == {CleaningState.CLEANED}
    assert is_read_by_all(table, {**rows, (added.id, 0): 6})
    assert table.directories() == list(outcome.targets)


@ON_BOTH_WITH_DATABASE
def test_a_cleaner_that_decided_before_the_undo_deletes_nothing_after_it(keeping: Site) -> None:
    """It has looked at its request, and has the sources for obsolete; it waits for the lock."""
    site, table = keeping, written(keeping)
    rows, sources = table.rows(), table.visible()
    compacted(site, table)
    site.settings = replace(site.settings, keep_replaced_hours=0.0)
    steps: list[Step] = []

    def undo_meanwhile(step: Step, entity: Entity) -> None:
        steps.append(step)
        if step is Step.CLEANING_DECIDED:
            undo(site, table)

    (cleaning,) = site.clean(table.entity(), on_step=undo_meanwhile)
    assert steps == [Step.CLEANING_DECIDED]
    assert cleaning.deleted == ()
    assert is_read_by_all(table, rows)
    assert table.visible() == sources


@ON_BOTH_WITH_DATABASE
def test_an_undo_that_fell_asleep_takes_nothing_away_once_its_lock_is_lost(
    keeping: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile a request with nothing to merge has what the result replaced cleaned."""
    site, table = keeping, written(keeping)
    rows = table.rows()
    result = compacted(site, table)
    take = Discard.take

    def fall_asleep(discard: Discard, names: Any, check: Callable[[], None]) -> None:
        monkeypatch.setattr(Discard, "take", take)
        for txn in site.client.open_transactions().open:
            site.client.abort(txn)
        clean_all_that_is_obsolete(site, table)
        assert table.visible() == [result]
        take(discard, names, lambda: None)

    monkeypatch.setattr(Discard, "take", fall_asleep)
    with pytest.raises(OwnershipLostError, match="is gone"):
        undo(site, table)
    assert is_read_by_all(table, rows)


def clean_all_that_is_obsolete(site: Site, table: AcidTable) -> None:
    kept, site.settings = site.settings, replace(site.settings, keep_replaced_hours=0.0)
    assert site.compact(table.entity()).state is OutcomeState.NOTHING_TO_MERGE
    assert [cleaning.state for cleaning in site.clean(table.entity())] == [CleaningState.CLEANED]
    site.settings = kept


@ON_BOTH_WITH_DATABASE
def test_a_dead_attempts_output_that_is_adopted_can_be_taken_back(keeping: Site) -> None:
    """What it had noted for an undo names a transaction that published nothing."""
    site, table = keeping, written(keeping)
    rows, sources = table.rows(), table.visible()
    publish = LocalStorage.publish

    def die_at_the_result(storage: LocalStorage, source: str, target: str) -> None:
        if target.startswith("base_"):
            os.kill(os.getpid(), signal.SIGKILL)
        publish(storage, source, target)

    def compact(there: Site) -> None:
        setattr(LocalStorage, "publish", die_at_the_result)  # noqa: B010 - in a process of its own
        there.compact(table.entity())

    in_a_process_that_dies(site, compact)
    (note,) = table.folder().glob("_acid_compaction_*/undo.json")
    site.settings = replace(site.settings, transaction_timeout_seconds=AT_ONCE)
    outcome = site.compact(table.entity(), job=merges_nothing)
    assert outcome.state is OutcomeState.COMPACTED, outcome
    assert not note.exists()
    assert is_read_by_all(table, rows)
    assert undo(site, table).removed == outcome.targets[0]
    assert table.directories() == sources
    assert is_read_by_all(table, rows)


def merges_nothing(plan: CompactionPlan) -> CompactionResult:
    raise AssertionError(f"{plan.entity} was merged once more")
