"""What a death, or a sleep, right after a step of publishing two directories leaves; all steps: ``tests/crash``."""

from __future__ import annotations

import shutil
import signal
import time
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest

from airflow_provider_acid.compaction import exclusive_lock
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.publish.staging import STAGING_PREFIX
from airflow_provider_acid.compaction.recover.recovery import Recovery
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState, TxnState
from airflow_provider_acid.plan.exchange import JOURNAL_FILE
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.compaction_chain import Chain, ChainProcess, run_until_killed
from tests.harness.crash_case import AROUND_THE_PAIR, LOCK_WAIT_SECONDS
from tests.integration.compaction_site import AcidTable, Site
from tests.integration.test_minor_publication import ROWS, check_both_kinds_see, inserts_and_deletes, values_of_trino

MINOR = CompactionType.MINOR


@pytest.fixture
def table(site: Site) -> AcidTable:
    return inserts_and_deletes(site)


def chain(table: AcidTable, lock_wait_seconds: float = LOCK_WAIT_SECONDS) -> Chain:
    server = table.site.server
    settings = replace(table.site.settings, minor_lock_wait_seconds=lock_wait_seconds)
    return Chain.on(server, table.entity(), settings=settings, type=MINOR)


def published(table: AcidTable) -> list[str]:
    return [name for name in table.directories() if "_v" in name]


def abort_the_only_attempt(table: AcidTable) -> CompactionRow:
    """As the metastore does where nobody beats for it; its row."""
    [row] = table.site.rows(table.entity())
    table.site.admin.abort(row.txn_id or 0)
    return row


def die_and_be_aborted(table: AcidTable, step: str) -> CompactionRow:
    """An attempt that is killed after a step, and whose transaction is aborted; its row."""
    run_until_killed(chain(table), step)
    return abort_the_only_attempt(table)


def check_end(table: AcidTable) -> None:
    """After cleaning, one pair, right for readers of every kind; nobody waits and nothing is held."""
    table.site.clean(table.entity())
    assert len(published(table)) == 2
    assert table.directories() == published(table)
    check_both_kinds_see(table, ROWS)
    assert table.site.client.show_locks(table.entity()) == []
    assert not table.site.admin.transactions().open - table.site.open_txns
    assert all(row.state.is_terminal for row in table.site.rows(table.entity()))


@pytest.mark.parametrize("successor", ["next try", "next run"])
@pytest.mark.parametrize("step", ["fenced", *AROUND_THE_PAIR[:-1]])
def test_a_sleeper_that_wakes_up_after_its_successor_does_no_harm(table: AcidTable, step: str, successor: str) -> None:
    first = chain(table)
    heir = first.next_try() if successor == "next try" else first.another_run().with_timeout(0.001)
    with closing(ChainProcess(first, step, signal.SIGSTOP)) as sleeper:
        sleeper.wait_until_asleep()
        outcome = heir.compact().outcome
        assert outcome.state is OutcomeState.COMPACTED, outcome
        names = published(table)
        woken = sleeper.wake()
        assert woken.state is (OutcomeState.COMPACTED if step == "committed" else OutcomeState.FAILED), woken
    assert published(table) == names
    check_both_kinds_see(table, ROWS)
    check_end(table)


@pytest.mark.parametrize("step", ["exclusive_lock_held", "journalled"])
def test_finished_output_is_adopted_with_both_directories(table: AcidTable, step: str) -> None:
    run_until_killed(chain(table), step)
    again = chain(table).compact()
    assert (again.outcome.state, again.merged) == (OutcomeState.COMPACTED, False)
    check_end(table)


def test_half_of_an_output_is_never_adopted(table: AcidTable) -> None:
    run_until_killed(chain(table), "first_published")
    assert len(published(table)) == 1
    again = chain(table).compact()
    assert (again.outcome.state, again.merged) == (OutcomeState.COMPACTED, True)
    check_end(table)


def test_the_journal_names_both_directories_the_transaction_and_the_lock(table: AcidTable) -> None:
    run_until_killed(chain(table), "first_published")
    [journal] = table.folder().glob(f"{STAGING_PREFIX}*/{JOURNAL_FILE}")
    [row] = table.site.rows(table.entity())
    text = journal.read_text()
    [half] = published(table)
    assert f'"{half}"' in text
    assert f'"delete_{half}"' in text or f'"{half.removeprefix("delete_")}"' in text
    assert f'"transaction": {row.txn_id}' in text
    locks = {lock.type: lock.lock_id for lock in table.site.client.show_locks(table.entity())}
    assert f'"lock": {locks["EXCLUSIVE"]}' in text
    chain(table).compact()


@pytest.mark.parametrize("has_journal", [True, False])
def test_half_of_an_aborted_transaction_goes_at_once_whoever_reads(table: AcidTable, has_journal: bool) -> None:
    """One rename makes it right for readers that ignore transactions, so nobody is waited for."""
    run_until_killed(chain(table), "first_published")
    [row] = table.site.rows(table.entity())
    if not has_journal:
        [staging] = table.folder().glob(f"{STAGING_PREFIX}*")
        shutil.rmtree(staging)
    table.site.admin.abort(row.txn_id or 0)
    assert table.values() == ROWS
    assert values_of_trino(table) != ROWS
    reader = table.site.reader(table)
    outcome = chain(table, lock_wait_seconds=0.2).compact().outcome
    assert outcome.state is OutcomeState.COMPACTED, "as a major, since the reader is in the way of a minor"
    check_both_kinds_see(table, ROWS)
    assert not [name for name in table.directories() if name.endswith(f"_v{row.txn_id:07d}")]
    table.site.end(reader, table.site.admin.commit)


def test_half_goes_while_the_dead_attempts_lock_still_keeps_readers_away(
    table: AcidTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_until_killed(chain(table), "first_published")
    [half] = published(table)
    [row] = table.site.rows(table.entity())
    publish, seen = LocalStorage.publish, []

    def look(storage: LocalStorage, source: str, target: str) -> None:
        if source == half:
            seen.append({(lock.type, lock.txn_id) for lock in table.site.client.show_locks(table.entity())})
        publish(storage, source, target)

    monkeypatch.setattr(LocalStorage, "publish", look)
    assert chain(table).compact().outcome.state is OutcomeState.COMPACTED
    assert seen == [{("SHARED_READ", row.txn_id), ("EXCLUSIVE", row.txn_id)}]
    check_end(table)


def test_who_died_while_taking_back_is_not_waited_for(table: AcidTable) -> None:
    die_and_be_aborted(table, "published")
    client, entity = table.site.client, table.entity()
    dead = client.open_compaction_txn(str(RequestPool.new(owner_of("dag/run/task", str(entity)))))
    client.lock_exclusive(dead, entity)
    assert chain(table, lock_wait_seconds=2).compact().outcome.state is OutcomeState.COMPACTED
    check_end(table)


def look_of_the_cleaner(table: AcidTable) -> str | None:
    settings = replace(table.site.settings, minor_lock_wait_seconds=0.2)
    return Recovery(table.site.client, table.site.queue, settings).withdraw_aborted(
        table.entity(), LocalStorage(str(table.folder()))
    )


def test_a_cleaner_does_not_end_the_lock_of_another_cleaner(table: AcidTable) -> None:
    """Two DAGs may clean one partition; a cleaner is no former try of another."""
    die_and_be_aborted(table, "published")
    pair = published(table)
    client, entity = table.site.client, table.entity()
    living = client.open_compaction_txn(str(RequestPool.new(owner_of("cleaner", str(entity)))))
    client.lock_exclusive(living, entity)
    waits = look_of_the_cleaner(table)
    assert client.transaction_state(living) is TxnState.OPEN
    assert waits is not None
    assert f"(EXCLUSIVE, acquired, txn {living}, " in waits
    assert published(table) == pair
    client.abort(living)
    chain(table).compact()
    check_end(table)


def test_a_sleeper_publishes_nothing_more_once_a_cleaner_took_back_its_half(table: AcidTable) -> None:
    with closing(ChainProcess(chain(table), "first_published", signal.SIGSTOP)) as sleeper:
        sleeper.wait_until_asleep()
        abort_the_only_attempt(table)
        assert look_of_the_cleaner(table) is None
        assert published(table) == []
        woken = sleeper.wake()
    assert "does not exist. Remedy: start the compaction again; its output was removed" in woken.message
    assert published(table) == []
    check_both_kinds_see(table, ROWS)
    chain(table).compact()
    check_end(table)


def test_finished_output_stays_of_use_after_a_cleaner_looked(table: AcidTable) -> None:
    die_and_be_aborted(table, "exclusive_lock_held")
    assert look_of_the_cleaner(table) is None
    again = chain(table).compact()
    assert (again.outcome.state, again.merged) == (OutcomeState.COMPACTED, False)
    check_end(table)


def test_a_base_of_an_aborted_transaction_stays_until_nobody_reads(table: AcidTable) -> None:
    """Who began while it was published, and ignores transactions, would miss its files."""
    major = replace(chain(table, lock_wait_seconds=0.2), type=CompactionType.MAJOR)
    run_until_killed(major, "published")
    [base] = published(table)
    reader = table.site.reader(table)
    abort_the_only_attempt(table)
    outcome = major.compact().outcome
    assert outcome.state is OutcomeState.SKIPPED, outcome
    assert "waits for the EXCLUSIVE lock (held by lock" in outcome.message
    assert look_of_the_cleaner(table) is not None
    assert published(table) == [base]
    check_both_kinds_see(table, ROWS)
    table.site.end(reader, table.site.admin.commit)
    assert major.compact().outcome.state is OutcomeState.COMPACTED
    table.site.clean(table.entity())
    assert len(published(table)) == 1
    assert base not in published(table)
    check_both_kinds_see(table, ROWS)


def test_who_loses_the_lock_under_which_it_is_removed_tries_again_later(
    table: AcidTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that overslept its time-out, say."""
    major = replace(chain(table, lock_wait_seconds=0.2), type=CompactionType.MAJOR)
    run_until_killed(major, "published")
    [base] = published(table)
    reader = table.site.reader(table)
    abort_the_only_attempt(table)

    def oversleep(seconds: float) -> None:
        for txn in {*table.site.client.open_transactions().open} - {reader}:
            table.site.admin.abort(txn)

    monkeypatch.setattr(exclusive_lock, "time", SimpleNamespace(monotonic=time.monotonic, sleep=oversleep))
    outcome = major.compact().outcome
    assert outcome.state is OutcomeState.SKIPPED, outcome
    assert "waits for a look with a lock that is not lost meanwhile" in outcome.message
    assert published(table) == [base]
    monkeypatch.undo()
    table.site.end(reader, table.site.admin.commit)
    assert major.compact().outcome.state is OutcomeState.COMPACTED


def test_a_pair_of_an_aborted_transaction_stays_until_nobody_reads(table: AcidTable) -> None:
    """Both are as good as their sources for readers that ignore transactions; half of them would not be."""
    die_and_be_aborted(table, "published")
    pair = published(table)
    reader = table.site.reader(table)
    outcome = chain(table, lock_wait_seconds=0.2).compact().outcome
    assert outcome.state is OutcomeState.SKIPPED, outcome
    assert "waits for the EXCLUSIVE lock (held by lock" in outcome.message
    assert f"txn {reader}, " in outcome.message
    assert published(table) == pair
    check_both_kinds_see(table, ROWS)
    table.site.end(reader, table.site.admin.commit)
    assert chain(table).compact().outcome.state is OutcomeState.COMPACTED
    assert not set(pair) & set(published(table))
    check_end(table)


def test_a_ready_pair_of_an_aborted_transaction_is_no_compaction(table: AcidTable) -> None:
    """HIVE-29572, with two directories: never cleaned as it stands, and taken back only under the lock."""
    row = die_and_be_aborted(table, "published")
    table.site.client.mark_compacted(CompactionInfo.of_row(row))
    pair = published(table)
    reader = table.site.reader(table)
    chain(table, lock_wait_seconds=0.2).clean()
    assert published(table) == pair
    assert table.site.row(row.id).state is CompactionState.READY_FOR_CLEANING
    table.site.end(reader, table.site.admin.commit)
    assert chain(table).clean() == ()
    assert published(table) == []
    assert table.site.row(row.id).state is CompactionState.FAILED
    check_both_kinds_see(table, ROWS)
    chain(table).compact()
    check_end(table)


def test_the_cleaner_deletes_no_pair_of_an_aborted_transaction_one_by_one(table: AcidTable) -> None:
    """The pair lies beside a committed compaction that is due for cleaning, and no row speaks of it any more."""
    site = table.site
    committed = site.compact(table.entity())
    table.insert(6, 7)
    table.write().insert(8).delete((4, 1)).commit()
    run_until_killed(chain(table), "published")
    pair = [name for name in published(table) if name not in committed.targets]
    assert len(pair) == 2
    [dead] = [row for row in site.rows(table.entity()) if row.state is CompactionState.WORKING]
    site.admin.abort(dead.txn_id or 0)
    site.client.mark_failed(CompactionInfo.of_row(dead), "Hive took the claim back")
    reader = site.reader(table)
    site.settings = replace(site.settings, minor_lock_wait_seconds=0.2)
    [waiting] = site.clean(table.entity())
    assert waiting.state is CleaningState.WAITING
    assert "what an aborted compaction published is still there" in waiting.message
    assert f"txn {reader}, " in waiting.message
    assert set(pair) <= set(table.directories())
    site.end(reader, site.admin.commit)
    [cleaned] = site.clean(table.entity())
    assert cleaned.state is CleaningState.CLEANED
    assert not set(pair) & {*table.directories(), *cleaned.deleted}, "it was taken back before, as a whole"
    check_both_kinds_see(table, [*ROWS, 6, 8])
