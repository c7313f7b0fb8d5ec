"""Hive 4's own worker compacts between two steps of ours, where neither queue nor lock keeps it away."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace

import pytest
from hmsclient.genthrift.hive_metastore import ttypes
from thrift.Thrift import TType

from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.metastore.thrift.wire import I64, FieldType, Method
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.compaction_chain import outcome_of, wait_until
from tests.harness.plain_job import run_plainly
from tests.integration.compaction_site import AcidTable, Site, StepRecorder, TxnType, due
from tests.unit.merge.acid_files import insert

MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR
NUMBER_OF_TEXT: FieldType = (TType.MAP, (TType.STRING, "UTF8", TType.I64, None, False))
REGISTER = Method("add_write_ids_to_min_history", (I64, NUMBER_OF_TEXT), None, (ttypes.MetaException,))
"""As Hive's readers do, with the lowest write id of each table that they do not see."""
RIVALS_POOL = "rivals"
"""A worker of any pool may compact the table; that of this one takes no other test's request."""


@dataclass(frozen=True)
class Rival:
    """Hive's worker with a compaction of the write ids from 1 on, each of which inserted one value.

    :param claimed: with what is recorded in the queue.
    """

    table: AcidTable
    claimed: CompactionInfo
    txn: int

    @classmethod
    def begin(cls, table: AcidTable, type: CompactionType, partition: str, highest: int) -> Rival:
        client, entity = table.site.client, table.entity(partition)
        asked = client.compact(entity, type, pool=RIVALS_POOL)
        assert asked.accepted, asked
        found = client.find_next_compaction("rival-worker", RIVALS_POOL, "4")
        assert found is not None
        assert found.id == asked.id
        txn = client.open_compaction_txn("rival-worker")
        client.lock_shared_read(txn, entity, "rival-worker")
        claimed = replace(found, highest_write_id=highest, run_as="hive")
        client.update_compactor_state(claimed, txn)
        return cls(table, claimed, txn)

    def finish(self, *values: int) -> str:
        """The result's name."""
        name = self.mark(*values)
        self.table.site.client.commit(self.txn)
        return name

    def mark(self, *values: int, first: int = 1) -> str:
        """One step before its end: the result is in its place, and the request keeps nobody away any more."""
        client, partition = self.table.site.client, self.claimed.entity.partition
        prefix = "base" if self.claimed.type == MAJOR.value else f"delta_{first:07d}"
        name = f"{prefix}_{first + len(values) - 1:07d}_v{self.txn:07d}"
        events = [insert(write_id, 0, value) for write_id, value in enumerate(values, start=first)]
        made = self.table.write_file(f"_tmp_rival/{name}", events, partition).parent
        made.rename(self.table.folder(partition) / name)
        made.parent.rmdir()
        client.mark_compacted(self.claimed)
        return name


def registered_reader(table: AcidTable) -> int:
    """A transaction for which each Hive's own Cleaner waits, as for a query that sees no write to the table yet."""
    site = table.site
    reader = site.open_txn(TxnType.READ_ONLY)
    site.client._invoke("a reader", REGISTER, reader, {f"{site.database}.{table.name}": 1}, repeatable=True)
    return reader


def rival_cleans(table: AcidTable, partition: str, highest: int) -> None:
    """What its Cleaner does about one-row inserts: since 4.1 it waits for registered readers at most."""
    for write_id in range(1, highest + 1):
        shutil.rmtree(table.folder(partition) / f"delta_{write_id:07d}_{write_id:07d}_0000")


def test_of_partitions_begun_together_one_that_a_rival_compacted_and_cleaned_meanwhile_keeps_its_rows(
    site: Site,
) -> None:
    """The first one's transaction is older than the rival's, whose base is not seen as of that one."""
    table = site.table(partitions=["p=a", "p=b"])
    for value in (1, 2, 3):
        table.insert(value, partition="p=b")
    late = [write.insert(value) for value, write in zip((4, 5), table.writes(2, "p=b"), strict=True)]
    for value in (6, 7):
        table.insert(value, partition="p=a")
    bases: list[str] = []

    def rivals_turn(step: Step) -> None:
        if step is Step.TRANSACTION_OPENED and not bases:
            # Of writes that are open it merges nothing.
            bases.append(Rival.begin(table, MAJOR, "p=b", 3).finish(1, 2, 3))
            rival_cleans(table, "p=b", 3)
            for write in late:
                write.commit()

    worker = site.worker(on_step=StepRecorder(rivals_turn))
    begun = worker.begin_together([due(table.entity("p=a")), due(table.entity("p=b"))])
    assert table.values() == [1, 2, 3, 4, 5, 6, 7]
    before = table.rows()
    for active in begun:
        assert isinstance(active, ActiveCompaction), active
        assert outcome_of(worker.finish(active, run_plainly(active.plan))).state is OutcomeState.COMPACTED
    assert table.rows() == before
    rivals, ours = (name for name in table.visible("p=b") if name.startswith("base_"))
    assert ([rivals], ours.partition("_v")[0]) == (bases, "base_0000005")


@pytest.mark.parametrize("site", ["hive_4", "hive_4_1", "hive_4_2"], indirect=True)
def test_hives_worker_gets_nothing_while_an_attempt_is_held_up(site: Site) -> None:
    """Its request keeps every other one away until it has committed, so that it commits beside nobody's result."""
    table = site.table(partitions=["p=a", "p=b"])
    for value in (1, 2, 3):
        table.insert(value, partition="p=a")
    entity, client = table.entity("p=a"), site.client
    held_up: list[Step] = []

    def rivals_turn(step: Step) -> None:
        if step not in (Step.PUBLISHED, Step.COMMITTED, Step.MARKED_COMPACTED):
            return
        # Without another write to the table the server takes no further request anyway.
        table.insert(4, partition="p=b")
        (row,) = site.rows(entity)
        if row.state is CompactionState.WORKING or row.commit_ms is None:
            held_up.append(step)
            assert not client.compact(entity, MINOR, pool=RIVALS_POOL).accepted
            assert client.find_next_compaction("rival-worker", RIVALS_POOL, "4") is None

    worker = site.worker(on_step=StepRecorder(rivals_turn))
    (active,) = worker.begin_together([due(entity)])
    assert isinstance(active, ActiveCompaction), active
    outcome = outcome_of(worker.finish(active, run_plainly(active.plan)))
    assert outcome.state is OutcomeState.COMPACTED, outcome
    assert held_up == [Step.PUBLISHED, Step.COMMITTED]
    assert table.values() == [1, 2, 3, 4, 4, 4]
    asked = client.compact(entity, MINOR, pool=RIVALS_POOL)
    assert asked.accepted, "only the attempt stood in its way"
    found = client.find_next_compaction("rival-worker", RIVALS_POOL, "4")
    assert found is not None
    assert found.id == asked.id
    client.mark_refused(found, "was only to be accepted")


class Died(BaseException):
    """The worker is no more."""


def test_hives_cleaner_takes_no_result_for_committed_that_is_not(hive_4_2_site: Site) -> None:
    """By its default settings it waits for registered readers alone, and counts transactions that are open.

    An earlier request of Hive's waits for a reader until our result is published. Where its Cleaner knows of no
    aborted transaction, it stumbles instead.
    """
    site = hive_4_2_site
    table = site.table(partitions=["p=a", "p=b"])
    for value in (1, 2, 3):
        table.insert(value, partition="p=a")
    table.write("p=b").insert(5).abort()
    reader = registered_reader(table)
    rival = Rival.begin(table, MINOR, "p=a", 3)
    rival.finish(1, 2, 3)
    table.insert(4, partition="p=a")

    def held_up(step: Step) -> None:
        if step is Step.PUBLISHED:
            site.end(reader, site.admin.commit)
            wait_until(lambda: site.row(rival.claimed.id).state is CompactionState.SUCCEEDED)
            assert table.values() == [1, 2, 3, 4]
            raise Died

    worker = site.worker(on_step=StepRecorder(held_up))
    (active,) = worker.begin_together([due(table.entity("p=a"), type=MINOR)])
    assert isinstance(active, ActiveCompaction), active
    with pytest.raises(Died):
        worker.finish(active, run_plainly(active.plan))
    active.transaction.close()
    assert table.values() == [1, 2, 3, 4]
    assert site.compact(table.entity("p=a")).state is OutcomeState.COMPACTED
    assert table.values() == [1, 2, 3, 4]


@pytest.mark.parametrize("site", ["hive_4", "hive_4_1", "hive_4_2"], indirect=True)
@pytest.mark.parametrize(
    ("commits_at", "state"),
    [(Step.ENQUEUED, OutcomeState.COMPACTED), (Step.TRANSACTION_OPENED, OutcomeState.FAILED)],
    ids=["before", "after"],
)
def test_nothing_is_published_where_a_rival_committed_after_our_transaction_was_opened(
    site: Site, commits_at: Step, state: OutcomeState
) -> None:
    """Its Cleaner may count ours, which is not committed: on 4.2, once an attempt died, no row was left for anybody.

    The rival's request was marked before ours was made, else that would not have been accepted.
    """
    table = site.table(partitions=["p=a", "p=b"])
    for value in (1, 2, 3):
        table.insert(value, partition="p=a")
    table.write("p=b").insert(5).abort()
    entity = table.entity("p=a")
    assert site.compact(entity).state is OutcomeState.COMPACTED
    for value in (5, 6):
        table.insert(value, partition="p=a")
    rivals: list[Rival] = []
    # Where 4.2's own Cleaner is done with the rival's request before we look, nothing is left to fear.
    reader = registered_reader(table)

    def rivals_turn(step: Step) -> None:
        if step is Step.RECOVERED:
            rivals.append(Rival.begin(table, MINOR, "p=a", 6))
            rivals[0].mark(5, 6, first=5)
            # Without another write to the table 4.2 would not accept our request.
            table.insert(7, partition="p=b")
        if step is commits_at:
            site.client.commit(rivals[0].txn)

    worker = site.worker(on_step=StepRecorder(rivals_turn))
    (active,) = worker.begin_together([due(entity)])
    assert isinstance(active, ActiveCompaction), active
    rival = site.row(rivals[0].claimed.id)
    newest_at_its_commit = active.transaction.txn_id - (commits_at is Step.ENQUEUED)
    assert rival.next_txn_id == newest_at_its_commit
    outcome = outcome_of(worker.finish(active, run_plainly(active.plan)))
    site.end(reader, site.admin.commit)
    assert outcome.state is state, outcome
    assert (f"request {rival.id} " in outcome.message) is (state is OutcomeState.FAILED)
    assert table.values() == [1, 2, 3, 5, 6, 7]
    if state is OutcomeState.FAILED:
        assert site.compact(entity).state is OutcomeState.COMPACTED
        assert table.values() == [1, 2, 3, 5, 6, 7]
