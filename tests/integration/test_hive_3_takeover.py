"""On Hive 3.1.3, where the rename publishes: sleepers that wake up when the partition is somebody else's by then.

A check before a rename is no fence, so each of these puts a worker to sleep between its last check and its rename.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.facts import load_facts
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.publish.staging import STAGING_PREFIX, FinishedOutput
from airflow_provider_acid.compaction.recover.attempts import pool_of_txn
from airflow_provider_acid.compaction.recover.recovered_partition import DIED
from airflow_provider_acid.compaction.recover.recovery import Recovery
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.values import CompactionState, TxnState
from airflow_provider_acid.plan.exchange import JOURNAL_FILE, REPLACED_FILE
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.compaction_chain import Chain, ChainProcess, run_until_killed
from tests.integration.compaction_site import AcidTable, Site

PARTITION = "p=1"
DEAD_AT_ONCE = 0.001
PAIRS = ("exclusive_lock_held", "journalled", "first_published")


@pytest.fixture
def table(hive_3_site: Site) -> Iterator[AcidTable]:
    """Three inserts into one partition: values 1 to 4; what the test leaves open is ended."""
    table = hive_3_site.table("p", partitions=[PARTITION])
    for values in ((1, 2), (3,), (4,)):
        table.insert(*values, partition=PARTITION)
    yield table
    end_dead_transactions(table)


def chain_for(table: AcidTable, type: CompactionType = CompactionType.MAJOR) -> Chain:
    settings = replace(table.site.settings, minor_pairs_on_hive_3=True, minor_lock_wait_seconds=10)
    return Chain.on(table.site.server, table.entity(PARTITION), "dag/run/task", settings, type)


def heir_of(chain: Chain, successor: str) -> Chain:
    return chain.next_try() if successor == "next try" else chain.another_run().with_timeout(DEAD_AT_ONCE)


def acid_directories(table: AcidTable) -> list[str]:
    return [name for name in table.directories(PARTITION) if not name.startswith("_")]


def stagings(table: AcidTable) -> list[Path]:
    return list(table.folder(PARTITION).glob(f"{STAGING_PREFIX}*"))


def end_dead_transactions(table: AcidTable) -> None:
    """As the metastore does when they are silent for too long; what they locked is free then."""
    for txn in table.site.client.transactions():
        if pool_of_txn(txn) is not None and txn.state is TxnState.OPEN:
            table.site.admin.abort(txn.id)


def check_cleaned(table: AcidTable, chain: Chain, *values: int) -> None:
    """After cleaning one base is left, nobody waits, nothing of ours lies around.

    A zombie that woke up has cleaned already.
    """
    assert table.values() == list(values)
    assert {cleaning.state for cleaning in chain.clean()} <= {CleaningState.CLEANED}
    assert table.values() == list(values)
    (name,) = table.directories(PARTITION)
    assert name.startswith("base_")
    rows = table.site.rows(table.entity(PARTITION))
    assert all(row.state.is_terminal for row in rows), rows


def truncate(table: AcidTable) -> None:
    table.site.admin.truncate_table(table.site.database, table.name, [PARTITION])
    assert table.values() == []


def drop_and_add_again(table: AcidTable) -> None:
    table.site.admin.drop_partition(table.site.database, table.name, PARTITION)
    assert not table.folder(PARTITION).exists()
    table.add_partition(PARTITION)
    table.insert(7, partition=PARTITION)


@pytest.mark.parametrize(
    ("change", "values"), [(truncate, []), (drop_and_add_again, [7])], ids=["TRUNCATE", "DROP and ADD"]
)
def test_a_sleeper_brings_nothing_back(
    table: AcidTable, change: Callable[[AcidTable], None], values: list[int]
) -> None:
    """Its lock was taken away, as that of a dead one is; the staging directory went with the partition's files."""
    with closing(ChainProcess(chain_for(table), "fenced", signal.SIGSTOP)) as sleeper:
        sleeper.wait_until_asleep()
        end_dead_transactions(table)
        change(table)
        woken = sleeper.wake()
        assert woken.state is OutcomeState.FAILED, woken
        assert "does not exist" in woken.message
    assert table.values() == values
    assert not [name for name in acid_directories(table) if name.startswith("base_")]
    # The metastore forgets the requests of a partition that is dropped.
    assert {row.state for row in table.site.rows(table.entity(PARTITION))} <= {CompactionState.FAILED}


@pytest.mark.parametrize("successor", ["next try", "next run"])
@pytest.mark.parametrize("step", ["staged", "fenced", "published", "marked_compacted"])
def test_a_sleeper_that_wakes_up_after_its_successor_does_no_harm(table: AcidTable, step: str, successor: str) -> None:
    chain = chain_for(table)
    heir = heir_of(chain, successor)
    with closing(ChainProcess(chain, step, signal.SIGSTOP)) as sleeper:
        sleeper.wait_until_asleep()
        outcome = heir.compact().outcome
        expected = {
            "published": OutcomeState.NOTHING_TO_MERGE,
            "marked_compacted": OutcomeState.SKIPPED,
        }.get(step, OutcomeState.COMPACTED)
        assert outcome.state is expected, outcome
        bases = [name for name in acid_directories(table) if name.startswith("base_")]
        woken = sleeper.wake()
        assert woken.state is (OutcomeState.COMPACTED if step == "marked_compacted" else OutcomeState.FAILED), woken
    assert [name for name in acid_directories(table) if name.startswith("base_")] == bases
    check_cleaned(table, heir, 1, 2, 3, 4)


def test_what_was_published_stays_and_its_sources_go_to_the_cleaner(table: AcidTable) -> None:
    chain = chain_for(table)
    run_until_killed(chain, "published")
    published = set(acid_directories(table))
    outcome = chain.compact().outcome
    assert outcome.state is OutcomeState.NOTHING_TO_MERGE, outcome
    assert set(acid_directories(table)) == published
    dead, own = table.site.rows(table.entity(PARTITION))
    assert (dead.state, own.state) == (CompactionState.FAILED, CompactionState.READY_FOR_CLEANING)
    assert str(dead.error_message).startswith(DIED)
    check_cleaned(table, chain, 1, 2, 3, 4)


@pytest.mark.parametrize("step", ["marked_compacted", "committed", "staging_removed"])
def test_a_published_row_is_left_to_the_cleaner_with_its_staging_directory(table: AcidTable, step: str) -> None:
    chain = chain_for(table)
    run_until_killed(chain, step)
    for heir in (chain.next_try(), chain.another_run().with_timeout(DEAD_AT_ONCE)):
        outcome = heir.compact().outcome
        assert outcome.state is OutcomeState.SKIPPED, outcome
        assert "waits to be cleaned" in outcome.message
    (staging,) = stagings(table)
    assert (staging / REPLACED_FILE).is_file()
    # The dead worker's transaction would hold the cleaning back until the metastore ends it.
    assert not table.site.admin.transactions().open
    check_cleaned(table, chain, 1, 2, 3, 4)


def test_a_published_row_that_hive_took_back_is_claimed_again(table: AcidTable) -> None:
    """Hive's Initiator takes back claims after its worker time-out; the row then says 'initiated' to everybody."""
    chain = chain_for(table)
    run_until_killed(chain, "committed")
    (row,) = table.site.rows(table.entity(PARTITION))
    take_back(table, row.id)
    (taken,) = table.site.rows(table.entity(PARTITION))
    assert (taken.state, taken.commit_ms) == (CompactionState.INITIATED, row.commit_ms)
    outcome = chain.another_run().compact().outcome
    assert outcome.state is OutcomeState.SKIPPED, outcome
    assert table.site.row(row.id).state is CompactionState.READY_FOR_CLEANING
    check_cleaned(table, chain, 1, 2, 3, 4)


def take_back(table: AcidTable, id: int) -> None:
    """What Hive's ``revokeTimedoutWorkers`` does."""
    table.site.server.server_database.query(
        "UPDATE compaction_queue SET cq_worker_id = NULL, cq_start = NULL, cq_state = 'i' WHERE cq_id = " + str(id)
    )


# A delta and a delete delta.


@pytest.fixture
def pair(table: AcidTable) -> AcidTable:
    """The same with one row deleted: values 1, 2, 4."""
    table.write(PARTITION).delete((2, 0)).commit()
    return table


@pytest.mark.parametrize("successor", ["next try", "next run"])
@pytest.mark.parametrize("step", PAIRS)
def test_a_sleeper_between_two_renames_does_no_harm(pair: AcidTable, step: str, successor: str) -> None:
    """Its successor's result has the same names: what it took for its own half must stay."""
    chain = chain_for(pair, CompactionType.MINOR)
    heir = heir_of(chain, successor)
    with closing(ChainProcess(chain, step, signal.SIGSTOP)) as sleeper:
        sleeper.wait_until_asleep()
        assert heir.compact().outcome.state is OutcomeState.COMPACTED
        assert heir.clean()[0].state is CleaningState.CLEANED
        published = acid_directories(pair)
        assert published == ["delete_delta_0000001_0000004", "delta_0000001_0000004"]
        woken = sleeper.wake()
        assert woken.state is OutcomeState.FAILED, woken
    assert acid_directories(pair) == published
    assert pair.values() == [1, 2, 4]


@pytest.mark.parametrize("step", PAIRS)
def test_half_of_a_pair_goes_back_and_is_adopted(pair: AcidTable, step: str) -> None:
    chain = chain_for(pair, CompactionType.MINOR)
    run_until_killed(chain, step)
    again = chain.compact()
    assert (again.outcome.state, again.merged) == (OutcomeState.COMPACTED, False), again
    assert pair.values() == [1, 2, 4]
    chain.clean()
    assert pair.directories(PARTITION) == ["delete_delta_0000001_0000004", "delta_0000001_0000004"]
    assert pair.values() == [1, 2, 4]


def test_a_whole_pair_stays(pair: AcidTable) -> None:
    chain = chain_for(pair, CompactionType.MINOR)
    run_until_killed(chain, "published")
    assert pair.values() == [1, 2, 4]
    assert chain.compact().outcome.state is OutcomeState.NOTHING_TO_MERGE
    chain.clean()
    assert pair.directories(PARTITION) == ["delete_delta_0000001_0000004", "delta_0000001_0000004"]
    assert pair.values() == [1, 2, 4]


def test_half_goes_while_the_dead_attempts_lock_keeps_readers_away(
    pair: AcidTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = chain_for(pair, CompactionType.MINOR)
    run_until_killed(chain, "first_published")
    publish, seen = LocalStorage.publish, []

    def look(storage: LocalStorage, source: str, target: str) -> None:
        if source.startswith("d"):
            seen.append({lock.type for lock in pair.site.client.show_locks(pair.entity(PARTITION))})
        publish(storage, source, target)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "publish", look)
        recover(pair)
    assert seen == [{"SHARED_READ", "EXCLUSIVE"}]
    assert pair.values() == [1, 2, 4]


def recover(table: AcidTable, *, site: Site | None = None) -> object:
    """What a next run of another task does first."""
    site = site or table.site
    settings = replace(site.settings, transaction_timeout_seconds=DEAD_AT_ONCE)
    entity = table.entity(PARTITION)
    pool = RequestPool.new(owner_of("another", str(entity)))
    return Recovery(site.client, site.queue, settings).recover(load_facts(site.client, entity), pool)


@pytest.mark.parametrize("before", ["take over", "take back", "end the row"])
def test_a_recovery_that_falls_asleep_leaves_everything_to_the_next(
    pair: AcidTable, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """Another one does all its work, and publishes the same names again, while it sleeps anywhere in between."""
    chain = chain_for(pair, CompactionType.MINOR)
    run_until_killed(chain, "first_published")
    publish, awake = LocalStorage.publish, threading.Event()

    def sleep_before(storage: LocalStorage, source: str, target: str) -> None:
        is_half, is_staging = source.startswith("delete_delta") or source.startswith("delta"), "/" not in target
        here = (before == "take back" and is_half) or (before == "take over" and is_staging and not is_half)
        if here and not awake.is_set():
            awake.set()
            others_turn()
        publish(storage, source, target)

    def others_turn() -> None:
        heir = chain.another_run().with_timeout(DEAD_AT_ONCE)
        assert heir.compact().outcome.state is OutcomeState.COMPACTED
        assert heir.clean()[0].state is CleaningState.CLEANED

    queue = pair.site.queue
    fail = type(queue).fail

    def fail_late(self: object, *arguments: object) -> None:
        if before == "end the row" and not awake.is_set():
            awake.set()
            others_turn()
        fail(self, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "publish", sleep_before)
        patch.setattr(type(queue), "fail", fail_late)
        found = recover(pair)
    assert awake.is_set()
    assert not isinstance(found, FinishedOutput)
    assert acid_directories(pair) == ["delete_delta_0000001_0000004", "delta_0000001_0000004"]
    assert pair.values() == [1, 2, 4]
    assert all(row.state.is_terminal for row in pair.site.rows(pair.entity(PARTITION)))


def test_the_journal_is_not_inherited(pair: AcidTable) -> None:
    """An adopter that dies before it writes its own would be taken for one that had begun to publish."""
    chain = chain_for(pair, CompactionType.MINOR)
    run_until_killed(chain, "first_published")
    run_until_killed(chain, "staged")
    (staging,) = stagings(pair)
    assert not (staging / JOURNAL_FILE).exists()
    assert (staging / REPLACED_FILE).exists()
    assert chain.compact().outcome.state is OutcomeState.COMPACTED
