"""A minor of inserts and deletes: two directories, published so that no reader who keeps the rules sees one of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.compaction.active import ActiveCompaction, AwaitsLock
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.settings import LOCK_QUEUE_SECONDS, LockTimeoutAction
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.metastore.values import CompactionState, LockState
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.compaction_chain import outcome_of
from tests.harness.plain_job import run_plainly
from tests.harness.thrift_admin import LockNotAcquiredError
from tests.integration.compaction_site import AcidTable, Site, StepRecorder, due

MINOR = CompactionType.MINOR
ROWS = [2, 3, 5]
PAIR = [Step.EXCLUSIVE_LOCK_ASKED, Step.EXCLUSIVE_LOCK_HELD, Step.JOURNALLED, Step.FIRST_PUBLISHED, Step.PUBLISHED]


def inserts_and_deletes(site: Site, name: str = "t", partition: str | None = None) -> AcidTable:
    """Values 1 to 5 in three writes; 1 and 4 are deleted again."""
    table = site.table(name, partitions=[partition] if partition else [])
    table.insert(1, 2, partition=partition)
    table.write(partition).insert(3, 4).delete((1, 0)).commit()
    table.write(partition).insert(5).delete((2, 1)).commit()
    return table


def minor(table: AcidTable, partition: str | None = None) -> DuePartition:
    return due(table.entity(partition), type=MINOR)


def pair_of(outcome: Outcome | ActiveCompaction) -> tuple[str, ...]:
    targets = outcome.plan.targets if isinstance(outcome, ActiveCompaction) else outcome.targets
    assert [name.partition("_v")[0] for name in targets] == ["delta_0000001_0000003", "delete_delta_0000001_0000003"]
    return targets


def begin(site: Site, table: AcidTable) -> ActiveCompaction:
    begun = site.worker().begin(minor(table))
    assert isinstance(begun, ActiveCompaction), begun
    return begun


def at_the_lock(site: Site, active: ActiveCompaction) -> AwaitsLock:
    """A compaction that is merged and may not have its lock yet."""
    waiting = site.worker().finish(active, run_plainly(active.plan))
    assert isinstance(waiting, AwaitsLock)
    return waiting


def check_nothing_is_held(table: AcidTable) -> None:
    site = table.site
    assert site.client.show_locks(table.entity()) == []
    assert not site.admin.transactions().open - site.open_txns
    assert not [name for name in table.directories() if name.startswith("_")]


def values_of_trino(table: AcidTable) -> list[int]:
    return sorted(table.rows(check_visibility=False).values())


def check_both_kinds_see(table: AcidTable, rows: list[int]) -> None:
    assert (table.values(), values_of_trino(table)) == (rows, rows)


@pytest.mark.parametrize("partition", [None, "p=1"])
def test_both_directories_appear_under_the_lock_and_readers_of_every_kind_see_the_rows(
    site: Site, partition: str | None
) -> None:
    table = inserts_and_deletes(site, partition=partition)
    locks: dict[Step, list[str]] = {}

    def look(step: Step) -> None:
        assert table.values() == ROWS, step
        if step is not Step.FIRST_PUBLISHED:
            assert values_of_trino(table) == ROWS, step
        locks[step] = [str(lock).partition(" (")[2] for lock in site.client.show_locks(table.entity(partition))]

    recorder = StepRecorder(look)
    outcome = site.compact(minor(table, partition), on_step=recorder)
    assert outcome.state is OutcomeState.COMPACTED, outcome
    published = set(pair_of(outcome))
    assert recorder.steps[recorder.steps.index(Step.FENCED) + 1 :][:6] == [*PAIR, Step.COMMITTED]
    for step in PAIR[1:]:
        assert [text.partition(",")[0] for text in locks[step]] == ["SHARED_READ", "EXCLUSIVE"], step
    assert locks[Step.COMMITTED] == []
    site.clean(table.entity(partition))
    assert set(table.directories(partition)) == published
    check_both_kinds_see(table, ROWS)
    check_nothing_is_held(table)


def test_between_the_two_renames_readers_without_the_lock_would_be_wrong(site: Site) -> None:
    """What the lock is for: without this the tests above would prove nothing."""
    table = inserts_and_deletes(site)
    seen: list[list[int]] = []

    def look(step: Step) -> None:
        if step is Step.FIRST_PUBLISHED:
            seen.append(values_of_trino(table))
            (reader,) = site.admin.open_transactions()
            site.open_txns.add(reader)
            with pytest.raises(LockNotAcquiredError):
                site.admin.lock_as_reader(reader, site.database, table.name)
            site.end(reader, site.admin.abort)

    site.compact(minor(table), on_step=StepRecorder(look))
    assert len(seen) == 1
    assert seen[0] != ROWS


@pytest.mark.parametrize("honour", [False, True])
def test_readers_who_honour_visibility_need_no_lock(site: Site, honour: bool) -> None:
    table = inserts_and_deletes(site)
    site.settings = replace(site.settings, readers_honour_visibility=honour)
    reader = site.reader(table)
    recorder = StepRecorder(lambda step: None if table.values() == ROWS else pytest.fail(step.value))
    if honour:
        outcome = site.compact(minor(table), on_step=recorder)
        pair_of(outcome)
        assert not {Step.EXCLUSIVE_LOCK_ASKED, Step.EXCLUSIVE_LOCK_HELD} & set(recorder.steps)
    else:
        active = begin(site, table)
        at_the_lock(site, active)
        site.worker().abandon(active, "the test is over")
    site.end(reader, site.admin.commit)


def test_one_kind_alone_needs_no_lock_where_everybody_began_after_what_is_merged(site: Site) -> None:
    table = site.table()
    for value in (1, 2, 3):
        table.insert(value)
    readers: list[int] = []
    recorder = StepRecorder(lambda step: readers.append(site.reader(table)) if step is Step.STAGED else None)
    outcome = site.compact(minor(table), on_step=recorder)
    assert [name.partition("_v")[0] for name in outcome.targets] == ["delta_0000001_0000003"]
    assert not set(PAIR[:4]) & set(recorder.steps)
    site.end(readers[0], site.admin.commit)


def test_transactions_that_have_no_lock_here_are_not_waited_for(site: Site) -> None:
    tables = [site.table(name) for name in ("t", "u")]
    for table in tables:
        table.insert(1)
        table.insert(2)
    recorder = StepRecorder(lambda step: None)
    workers = [site.worker(name, recorder) for name in ("one", "other")]
    actives = [worker.begin(minor(table)) for worker, table in zip(workers, tables, strict=True)]
    # The later one first, while the older one is still open.
    for worker, active in reversed(list(zip(workers, actives, strict=True))):
        assert isinstance(active, ActiveCompaction), active
        outcome = worker.finish(active, run_plainly(active.plan))
        assert isinstance(outcome, Outcome)
        assert outcome.state is OutcomeState.COMPACTED, outcome
    assert Step.EXCLUSIVE_LOCK_ASKED not in recorder.steps


def test_one_kind_alone_waits_for_a_reader_that_began_before_what_is_merged_had_ended(site: Site) -> None:
    """Trino does not look at the write ids of rows: it would see one of a transaction that its snapshot has not."""
    table = site.table()
    for value in (1, 2):
        table.insert(value)
    third = table.write().insert(3)
    reader = site.reader(table)
    third.commit()
    active = begin(site, table)
    waiting = at_the_lock(site, active)
    assert len(active.plan.outputs) == 1
    site.end(reader, site.admin.commit)
    outcome = site.worker().resume(waiting)
    assert isinstance(outcome, Outcome)
    assert outcome.state is OutcomeState.COMPACTED, outcome


def test_a_lock_that_is_granted_in_time_is_used(site: Site) -> None:
    table = inserts_and_deletes(site)
    reader = site.reader(table)
    active = begin(site, table)
    worker = site.worker()
    waiting = at_the_lock(site, active)
    assert worker.resume(waiting) is waiting
    assert not set(active.plan.targets) & set(table.directories())
    site.end(reader, site.admin.commit)
    assert outcome_of(worker.resume(waiting)).state is OutcomeState.COMPACTED
    check_both_kinds_see(table, ROWS)
    check_nothing_is_held(table)


def test_new_readers_need_not_wait_while_the_lock_is_not_even_asked_for(site: Site) -> None:
    table = inserts_and_deletes(site)
    reader = site.reader(table)
    active = begin(site, table)
    waiting = at_the_lock(site, active)
    second = site.reader(table)
    assert site.worker().resume(waiting) is waiting
    site.end(reader, site.admin.commit)
    assert site.worker().resume(waiting) is waiting
    site.end(second, site.admin.commit)
    assert outcome_of(site.worker().resume(waiting)).state is OutcomeState.COMPACTED
    check_nothing_is_held(table)


def test_new_readers_wait_behind_a_waiting_lock_until_it_is_withdrawn(site: Site) -> None:
    """The price that the option's text names, for the last seconds of the wait."""
    site.settings = replace(site.settings, minor_lock_wait_seconds=LOCK_QUEUE_SECONDS)
    table = inserts_and_deletes(site)
    reader = site.reader(table)
    active = begin(site, table)
    at_the_lock(site, active)
    (second,) = site.admin.open_transactions()
    site.open_txns.add(second)
    answer = site.client.lock_shared_read(second, table.entity())
    assert answer.state is LockState.WAITING
    site.worker().abandon(active, "the test is over")
    assert site.client.check_lock(answer.lock_id, second).state is LockState.ACQUIRED
    for txn in (reader, second):
        site.end(txn, site.admin.commit)


def in_the_way(site: Site, table: AcidTable) -> int:
    """A reader; nobody waits for him for long."""
    reader = site.reader(table)
    site.settings = replace(site.settings, minor_lock_wait_seconds=0.3)
    return reader


def test_a_lock_that_is_not_granted_in_time_makes_a_major_with_the_reason(site: Site) -> None:
    table = inserts_and_deletes(site)
    reader = in_the_way(site, table)
    outcome = site.compact(minor(table))
    assert outcome.state is OutcomeState.COMPACTED
    assert outcome.targets[0].startswith("base_0000003_v")
    assert "test; done as a major, because the EXCLUSIVE lock was not granted within 0.3 s (held by lock " in (
        outcome.message
    )
    assert f"(SHARED_READ, acquired, txn {reader}, " in outcome.message
    assert ", held for 0 s)" in outcome.message or ", held for 1 s)" in outcome.message
    refused, compacted = sorted(site.rows(table.entity()), key=lambda row: row.id)
    assert (refused.state, refused.type) == (CompactionState.REFUSED, "minor")
    assert str(refused.error_message) == outcome.message
    assert (compacted.state, compacted.type) == (CompactionState.READY_FOR_CLEANING, "major")
    check_both_kinds_see(table, ROWS)
    site.end(reader, site.admin.commit)
    site.clean(table.entity())
    assert table.directories() == list(outcome.targets)
    check_nothing_is_held(table)


def test_or_it_is_refused_with_the_lock_that_was_in_the_way_and_nothing_is_changed(site: Site) -> None:
    table = inserts_and_deletes(site)
    reader = in_the_way(site, table)
    site.settings = replace(site.settings, minor_lock_timeout_action=LockTimeoutAction.REFUSE)
    before = table.fingerprint()
    outcome = site.compact(minor(table))
    assert outcome.state is OutcomeState.REFUSED
    assert f"txn {reader}, " in outcome.message
    assert ". Remedy: " in outcome.message
    assert "minor_lock_timeout_action" in outcome.message
    assert table.fingerprint() == before
    assert site.row(outcome.request_id).state is CompactionState.REFUSED
    site.end(reader, site.admin.commit)
    check_nothing_is_held(table)


def test_a_drop_that_waits_for_the_compaction_is_no_deadlock(site: Site) -> None:
    table = inserts_and_deletes(site)
    site.settings = replace(site.settings, minor_lock_wait_seconds=0.3)
    active = begin(site, table)
    (dropper,) = site.admin.open_transactions()
    site.open_txns.add(dropper)
    drop = site.client.lock_exclusive(dropper, table.entity())
    assert drop.state is LockState.WAITING
    worker = site.worker()
    finished = worker.finish(active, run_plainly(active.plan))
    while isinstance(finished, AwaitsLock):
        finished = worker.resume(finished)
    assert isinstance(finished, DuePartition)
    assert site.client.check_lock(drop.lock_id, dropper).state is LockState.ACQUIRED


def test_inputs_that_changed_while_the_lock_was_waited_for_publish_nothing(site: Site) -> None:
    table = inserts_and_deletes(site)
    reader = site.reader(table)
    active = begin(site, table)
    waiting = at_the_lock(site, active)
    (table.folder() / "delta_0000002_0000002_0000" / "bucket_00000").write_bytes(b"other")
    site.end(reader, site.admin.commit)
    outcome = outcome_of(site.worker().resume(waiting))
    assert outcome.state is OutcomeState.FAILED
    assert "its input files changed" in outcome.message
    assert not set(active.plan.targets) & set(table.directories())
    check_nothing_is_held(table)


@pytest.mark.parametrize("name", ["delta_0000001_0000003_v0000001", "delete_delta_0000001_0000003"])
def test_a_range_that_somebody_else_published_meanwhile_is_not_published_again(site: Site, name: str) -> None:
    """HIVE-29210: readers take both for parts of the table, whatever their transactions."""
    table = inserts_and_deletes(site)
    active = begin(site, table)
    result = run_plainly(active.plan)
    (table.folder() / name).mkdir()
    outcome = outcome_of(site.worker().finish(active, result))
    assert outcome.state is OutcomeState.FAILED
    assert f"{name} appeared, with write ids of " in outcome.message
    assert not set(active.plan.targets) & set(table.directories())
    check_nothing_is_held(table)


@pytest.mark.parametrize("failing", [1, 2])
def test_a_rename_that_fails_leaves_none_of_the_two(site: Site, failing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = inserts_and_deletes(site)
    active = begin(site, table)
    result = run_plainly(active.plan)
    fail_to_publish(monkeypatch, active.plan.targets[failing - 1])
    outcome = outcome_of(site.worker().finish(active, result))
    assert (outcome.state, outcome.message) == (OutcomeState.FAILED, "disk: is full. Remedy: empty it.")
    assert site.row(outcome.request_id).state is CompactionState.FAILED
    assert not set(active.plan.targets) & set(table.directories())
    assert values_of_trino(table) == ROWS
    check_nothing_is_held(table)


def test_half_that_cannot_be_taken_back_is_left_to_the_next_run_which_does(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = inserts_and_deletes(site)
    active = begin(site, table)
    result = run_plainly(active.plan)
    with monkeypatch.context() as patch:
        fail_to_publish(patch, active.plan.targets[1], active.plan.targets[0])
        outcome = outcome_of(site.worker().finish(active, result))
    assert outcome.state is OutcomeState.FAILED
    assert "readers that ignore a compaction's transaction, as Trino does, see wrong rows" in outcome.message
    assert site.row(outcome.request_id).state is CompactionState.WORKING
    assert table.values() == ROWS
    assert site.compact(minor(table)).state is OutcomeState.COMPACTED
    check_both_kinds_see(table, ROWS)
    assert not [name for name in table.directories() if name in active.plan.targets]
    check_nothing_is_held(table)


def fail_to_publish(monkeypatch: pytest.MonkeyPatch, to: str, away: str | None = None) -> None:
    """Renames to the one name, and from the other, fail."""
    publish = LocalStorage.publish

    def fail(storage: LocalStorage, source: str, target: str) -> None:
        if target == to or source == away:
            raise StorageError("disk", "is full", "empty it")
        publish(storage, source, target)

    monkeypatch.setattr(LocalStorage, "publish", fail)
