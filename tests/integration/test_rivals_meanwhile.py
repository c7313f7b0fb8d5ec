"""Hive 4's own worker compacts between two steps of ours, where neither queue nor lock keeps it away."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace

import pytest

from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.recover.recovered_partition import DIED
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.compaction.work import finishing
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.compaction_chain import Chain, outcome_of, run_until_killed, wait_until
from tests.harness.plain_job import run_plainly
from tests.integration.compaction_site import AcidTable, Site, StepRecorder, due
from tests.unit.merge.acid_files import insert

MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR
CLEANERS_LOOKS_SECONDS = 6.0
"""In which Hive's Cleaner, which looks once a second here, looks a few times."""
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
        client, partition = self.table.site.client, self.claimed.entity.partition
        prefix = "base" if self.claimed.type == MAJOR.value else "delta_0000001"
        name = f"{prefix}_{len(values):07d}_v{self.txn:07d}"
        events = [insert(write_id, 0, value) for write_id, value in enumerate(values, start=1)]
        made = self.table.write_file(f"_tmp_rival/{name}", events, partition).parent
        made.rename(self.table.folder(partition) / name)
        made.parent.rmdir()
        client.mark_compacted(self.claimed)
        client.commit(self.txn)
        return name


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


def settle(chain: Chain, who: str) -> None:
    if who == "next try":
        assert not chain.compact().outcome.state.is_failure
    else:
        chain.another_run().with_timeout(0.001).clean()


@pytest.mark.parametrize("who", ["next try", "cleaner of another run"])
@pytest.mark.parametrize("rival_is", ["done", "at work"])
def test_what_a_dead_attempt_left_ready_is_not_committed_beside_a_rivals_result(
    site: Site, rival_is: str, who: str
) -> None:
    table = site.table(partitions=["p=a", "p=b"])
    for value in (1, 2, 3):
        table.insert(value, partition="p=a")
    entity = table.entity("p=a")
    chain = Chain.on(site.server, entity, type=MINOR)
    run_until_killed(chain, "marked_compacted")
    (row,) = site.rows(entity)
    dead = f"delta_0000001_0000003_v{row.txn_id:07d}"
    assert (row.state, row.commit_ms) == (CompactionState.READY_FOR_CLEANING, None)
    assert dead in table.visible("p=a")
    # Without another write to the table the server takes no further request.
    table.insert(4, partition="p=b")
    before = table.rows()
    rival = Rival.begin(table, MINOR, "p=a", 3)
    if rival_is == "at work":
        settle(chain, who)
    rivals = rival.finish(1, 2, 3)
    assert table.rows() == before
    settle(chain, who)
    assert table.rows() == before
    ended = site.row(row.id)
    assert (ended.state, str(ended.error_message).startswith(DIED)) == (CompactionState.FAILED, True)
    assert dead not in table.visible("p=a")
    assert rivals in table.visible("p=a")


@pytest.mark.parametrize("rival_is", ["done", "at work"])
def test_who_is_held_up_before_the_commit_does_not_commit_beside_a_rivals_result(
    site: Site, monkeypatch: pytest.MonkeyPatch, rival_is: str
) -> None:
    monkeypatch.setattr(finishing, "PROMPT_SECONDS", 0.0)
    table = site.table(partitions=["p=a", "p=b"])
    for value in (1, 2, 3):
        table.insert(value, partition="p=a")
    rivals: list[Rival] = []

    def held_up(step: Step) -> None:
        if step is Step.MARKED_COMPACTED:
            # Without another write to the table the server takes no further request.
            table.insert(4, partition="p=b")
            rivals.append(Rival.begin(table, MINOR, "p=a", 3))
            if rival_is == "done":
                rivals[0].finish(1, 2, 3)

    worker = site.worker(on_step=StepRecorder(held_up))
    (active,) = worker.begin_together([due(table.entity("p=a"))])
    assert isinstance(active, ActiveCompaction), active
    outcome = outcome_of(worker.finish(active, run_plainly(active.plan)))
    if rival_is == "at work":
        rivals[0].finish(1, 2, 3)
    assert outcome.state is OutcomeState.FAILED
    assert "was held up before its commit" in outcome.message
    assert table.values() == [1, 2, 3, 4]


def test_hives_cleaner_takes_no_result_for_committed_that_is_not(hive_4_2_site: Site) -> None:
    """By its default settings it waits for registered readers alone, and counts transactions that are open.

    Where it knows of no aborted one below such a one, it stumbles instead.
    """
    site = hive_4_2_site
    table = site.table(partitions=["p=a", "p=b"])
    for value in (1, 2, 3):
        table.insert(value, partition="p=a")
    table.write("p=b").insert(5).abort()
    entity = table.entity("p=a")
    rivals: list[Rival] = []

    def held_up(step: Step) -> None:
        if step is not Step.MARKED_COMPACTED:
            return
        # Without another write to the table the server takes no further request.
        table.insert(4, partition="p=b")
        rivals.append(Rival.begin(table, MINOR, "p=a", 3))
        rivals[0].finish(1, 2, 3)
        time.sleep(CLEANERS_LOOKS_SECONDS)
        assert table.values() == [1, 2, 3, 4]
        assert site.row(rivals[0].claimed.id).state is CompactionState.READY_FOR_CLEANING

    worker = site.worker(on_step=StepRecorder(held_up))
    (active,) = worker.begin_together([due(entity)])
    assert isinstance(active, ActiveCompaction), active
    outcome = outcome_of(worker.finish(active, run_plainly(active.plan)))
    assert outcome.state is OutcomeState.FAILED
    assert "was held up before its commit" in outcome.message
    wait_until(lambda: site.row(rivals[0].claimed.id).state is CompactionState.SUCCEEDED)
    assert table.values() == [1, 2, 3, 4]
