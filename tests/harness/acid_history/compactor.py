"""The product's compaction of a history's partition: recover, plan, merge, publish by renames, die."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_3
from airflow_provider_acid.compaction.facts import load_facts
from airflow_provider_acid.compaction.outcomes import Outcome
from airflow_provider_acid.compaction.publish.fence import check_inputs, verify_output
from airflow_provider_acid.compaction.publish.publisher import publisher_on
from airflow_provider_acid.compaction.publish.replaced import write_replaced
from airflow_provider_acid.compaction.publish.staging import open_staging, staging_name
from airflow_provider_acid.compaction.recover.dead_results import take_back_half
from airflow_provider_acid.compaction.recover.recovery import Recovery
from airflow_provider_acid.compaction.snapshot import TransactionView, take_snapshot
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.compaction.work.claiming import drop
from airflow_provider_acid.exceptions import OwnershipLostError, RefusedError, UnsupportedTableError
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState
from airflow_provider_acid.plan.partition import AttemptNames, CompactionPolicy, MinorPublication, PartitionState
from airflow_provider_acid.plan.plan import Column, CompactionPlan, CompactionType, CopiedStripes
from airflow_provider_acid.plan.planning import plan_compaction
from airflow_provider_acid.plan.result import CompactionResult
from tests.harness.acid_history.looks import WatchedStorage
from tests.harness.acid_history.metastore import ENTITY, NOW_MS, TABLE, State
from tests.harness.acid_history.partition import Partition
from tests.harness.acid_history.published import check_published
from tests.harness.acid_history.steps import Death
from tests.harness.plain_job import run_plainly

COPIED_STRIPES = tuple(CopiedStripes)
SLICE_BYTES = (1, CompactionPolicy.slice_bytes)
"""In turns, so that one copies what another has written."""

_NOTHING_TO_DO = "nothing needs to be done"
_OWNER = "0123456789ab"
_OWNER_OF_ANOTHER = "ba9876543210"


@dataclass(frozen=True)
class _Running:
    """A compaction in work.

    :param replaced: what was obsolete or aborted when it was planned, and what it merged. Names of Hive 3 do not say
        which compaction made a directory, so that a later one's result would count in an earlier one's cleaning.
    :param seen: what the listing showed right in the partition by which it was planned.
    """

    plan: CompactionPlan
    row: CompactionRow
    txn: int
    replaced: frozenset[str]
    seen: frozenset[str]


class _Died(BaseException):
    """No error that anybody would catch."""


class Compactor:
    """At most one compaction at a time; whoever died was a former try of the same task.

    :param published: called after each rename: whether readers without a look at transactions may read.
    :param readers_are_open: whether anybody else holds a lock on the partition.
    """

    def __init__(
        self, partition: Partition, published: Callable[[bool], None], readers_are_open: Callable[[], bool]
    ) -> None:
        self._partition = partition
        self._storage = WatchedStorage(str(partition.folder), partition.looks)
        self._published = published
        self._readers_are_open = readers_are_open
        self._running: _Running | None = None
        self._attempts = 0
        self._group: int | None = None
        self.done: list[CompactionPlan] = []
        self._asleep: dict[int, _Running] = {}
        """What is published and not committed, by its transaction."""
        self.died_before_its_end = 0
        self.groups: list[int] = []
        """Open transactions of other partitions that were begun together with this one."""

    @property
    def has_lock(self) -> bool:
        """Whether a compaction, dead or alive, has its lock, which keeps INSERT OVERWRITE away."""
        return self._running is not None or bool(self._partition.metastore.silent)

    def begin_group(self, *, has_ended: bool) -> str | None:
        """Another partition is begun together with the next compaction here, and opens its transaction first."""
        if self._group is not None or self._running:
            return None
        self._group = self._partition.client.open_compaction_txn(str(RequestPool.new(_OWNER_OF_ANOTHER)))
        self.groups.append(self._group)
        if has_ended:
            self.end_group(self._group, State.ABORTED)
        return f"transaction {self._group}"

    def end_group(self, txn: int, state: State) -> None:
        """The compaction of a group's other partition ends."""
        self.groups.remove(txn)
        self._partition.metastore.end(txn, state)

    def recover(self) -> str | None:
        """What a new attempt does about dead ones; what it waits for, in words, or None where it may begin."""
        partition = self._partition
        if self._running or partition.overwriter:
            return "cannot start"
        if partition.kind.hive_version == 3:
            self._recover_on_hive_3()
            return None
        recovery = Recovery(partition.client, partition.queue, partition.settings)
        found = recovery.recover(load_facts(cast(Any, partition.client), ENTITY), self._new_pool())
        if isinstance(found, Outcome):
            return f"cannot start: {found.message}"
        drop(self._storage, found)
        return None

    def start(self, wanted: CompactionType) -> str:
        """Take a snapshot and plan, after :meth:`recover`; what came of it, in words."""
        partition, pool = self._partition, self._new_pool()
        self._attempts += 1
        working = CompactionState.WORKING
        row = partition.metastore.add_row(
            CompactionRow(0, ENTITY, wanted.value, working, pool.worker_id("there"), str(pool), NOW_MS)
        )
        txn = partition.client.open_compaction_txn(str(pool))
        partition.client.lock_shared_read(txn, ENTITY, str(pool))
        before = fingerprint(partition.folder)
        try:
            plan, replaced, seen = self._plan(wanted, txn, pool.token)
        except RefusedError as error:
            if error.remedy != _NOTHING_TO_DO:
                raise
            partition.metastore.end(txn, State.ABORTED)
            partition.metastore.move_row(row.id, CompactionState.REFUSED)
            is_unchanged = partition.looks.were_disturbed or fingerprint(partition.folder) == before
            assert is_unchanged, "a refusal changed the partition"
            return f"refused: {error.reason}"
        row = partition.metastore.change_row(replace(row, txn_id=txn, highest_write_id=plan.high_water_mark))
        open_staging(self._storage, plan)
        self._running = _Running(plan, row, txn, replaced, seen)
        return f"transaction {txn}: {plan.reason}; {', '.join(plan.directories)} -> {', '.join(plan.targets)}"

    def finish(self, death: Death) -> str:
        """Merge and publish what was started."""
        if self._running is None:
            return "nothing runs"
        running, plan, metastore = self._running, self._running.plan, self._partition.metastore
        result = run_plainly(plan)
        assert result.error is None, f"the job failed: {result.error}"
        verify_output(self._storage, plan, result)
        check_inputs(self._storage, plan, running.seen)
        self._running = None
        if self._partition.kind.hive_version == 4:
            claim = ClaimedCompaction(CompactionInfo.of_row(running.row), running.row.worker_id or "", running.txn)
            try:
                self._partition.queue.fence(claim)
            except OwnershipLostError as error:
                return self._give_up(running, error.reason)
        if death is Death.BEFORE_PUBLISHING:
            metastore.fall_silent(running.txn)
            return "died before publishing"
        if not self._may_publish(plan):
            return self._give_up(running, "did not get its lock")
        try:
            self._publish(running, result, death)
        except _Died:
            return self._die_between_renames(running)
        if death is Death.AFTER_PUBLISHING:
            metastore.fall_silent(running.txn)
            self._asleep[running.txn] = running
            return f"published {', '.join(plan.targets)}, died before it said so"
        self._complete(running, death)
        if death is Death.BEFORE_ITS_END:
            self.died_before_its_end += 1
            return f"published {', '.join(plan.targets)}, died one step before its end"
        publisher_on(self._storage).remove(plan.staging)
        self._note_replaced(running)
        return f"published {', '.join(plan.targets)}"

    def wake(self, txn: int) -> bool:
        """Whoever was only asleep after it had published goes on; False where nobody was."""
        running = self._asleep.pop(txn, None)
        if running is None or self._partition.kind.hive_version == 3:
            return False
        self._complete(running, Death.NOT)
        return True

    def _new_pool(self) -> RequestPool:
        return RequestPool(_OWNER, f"{self._attempts + 1:016x}")

    def _give_up(self, running: _Running, reason: str) -> str:
        publisher_on(self._storage).give_up(running.plan)
        self._partition.metastore.end(running.txn, State.ABORTED)
        self._partition.metastore.move_row(running.row.id, CompactionState.REFUSED)
        return f"gave up: {reason}"

    def _complete(self, running: _Running, death: Death) -> None:
        """What is published is committed and marked, on Hive 3 the other way round."""
        metastore, dies = self._partition.metastore, death is Death.BEFORE_ITS_END
        self.done.append(running.plan)
        if self._partition.kind.hive_version == 4:
            metastore.end(running.txn, State.COMMITTED)
            if not dies:
                metastore.mark_compacted(running.row.id)
            return
        highest, lock = metastore.txn_high_water_mark, metastore.last_lock_id
        metastore.change_row(replace(running.row, next_txn_id=highest, commit_ms=NOW_MS, newest_lock_id=lock))
        metastore.mark_compacted(running.row.id)
        if dies:
            metastore.fall_silent(running.txn)
        else:
            metastore.end(running.txn, State.COMMITTED)

    def _note_replaced(self, running: _Running) -> None:
        if self._partition.kind.hive_version == 3:
            self._storage.make_directory(running.plan.staging)
            write_replaced(self._storage, running.plan.staging, running.replaced)

    def _plan(
        self, wanted: CompactionType, txn: int, token: str
    ) -> tuple[CompactionPlan, frozenset[str], frozenset[str]]:
        """The plan, what it replaces, and what was seen."""
        partition, storage = self._partition, self._storage
        hive = partition.kind.hive
        oldest, self._group = txn if self._group is None else self._group, None
        view = TransactionView(cast(Any, partition.client), oldest)
        seen = take_snapshot(view, TABLE, storage, hive, own_txn_id=txn)
        directory = seen.directory
        plan = plan_compaction(
            PartitionState(
                entity=ENTITY,
                location=storage.location,
                directory=directory,
                write_ids=seen.write_ids,
                columns=tuple(Column(name, kind) for name, kind in partition.columns.items()),
                bucketed=partition.kind.buckets > 0,
                table_parameters={},
                flush_lengths=seen.flush_lengths,
            ),
            AttemptNames(token, staging_name(token), txn if hive.publishes_by_commit else 0),
            wanted,
            "a test",
            CompactionPolicy(
                stripe_copy=COPIED_STRIPES[self._attempts % len(COPIED_STRIPES)],
                slice_bytes=SLICE_BYTES[self._attempts % len(SLICE_BYTES)],
                max_num_delta=partition.kind.max_deltas,
                minor_publication=self._mixed(),
                rewrite_single_delta=hive == HIVE_3,
            ),
        )
        originals = [part for file in directory.originals for part in (file.path, file.path.partition("/")[0])]
        replaced = {*plan.directories, *directory.obsolete, *directory.aborted}
        replaced |= {*(originals if plan.type is CompactionType.MAJOR else ())}
        names = frozenset(name for name in seen.listing.directories if "/" not in name)
        return plan, frozenset(replaced), names

    def _mixed(self) -> MinorPublication:
        kind = self._partition.kind
        is_promised = kind.hive_version == 4 or kind.mixed is not MinorPublication.LOCK_FREE
        return kind.mixed if is_promised else MinorPublication.UNDER_LOCK

    def _may_publish(self, plan: CompactionPlan) -> bool:
        """An exclusive lock waits for all others; here it is not got while there are any."""
        needs_lock = len(plan.outputs) > 1 and self._mixed() is MinorPublication.UNDER_LOCK
        return not (needs_lock and self._is_locked())

    def _publish(self, running: _Running, result: CompactionResult, death: Death) -> None:
        plan = running.plan

        def on_step(step: Step, entity: Entity) -> None:
            if step is Step.FIRST_PUBLISHED:
                check_published(self._partition.folder / plan.targets[0])
                # Between two renames under an exclusive lock there is no reader at all.
                if self._mixed() is MinorPublication.LOCK_FREE:
                    self._published(False)
                if death is Death.BETWEEN_RENAMES:
                    raise _Died

        transaction = SimpleNamespace(txn_id=running.txn, exclusive_lock_id=None)
        active = SimpleNamespace(plan=plan, transaction=transaction, entity=ENTITY)
        publisher_on(self._storage).publish(cast(Any, active), result, on_step)
        check_published(self._partition.folder / plan.targets[-1])
        self._published(True)

    def _die_between_renames(self, running: _Running) -> str:
        """The half is taken back while the dead attempt's lock, if it had one, still keeps readers away."""
        metastore, first = self._partition.metastore, running.plan.targets[0]
        metastore.fall_silent(running.txn)
        if self._partition.kind.hive_version == 4:
            self._published(False)
            self.recover()
        else:
            self._check_half_is_refused(running.txn)
            moved = publisher_on(self._storage).take_over(running.plan.attempt)
            assert moved is not None, "nobody else took it"
            take_back_half(self._storage, moved)
            publisher_on(self._storage).remove(moved)
            self._recover_on_hive_3()
        assert not (self._partition.folder / first).exists(), f"{first} stayed"
        return f"died after it had published {first}"

    def _check_half_is_refused(self, txn: int) -> None:
        before = fingerprint(self._partition.folder)
        try:
            plan, _, _ = self._plan(CompactionType.MAJOR, txn, f"{0:016x}")
        except UnsupportedTableError:
            assert fingerprint(self._partition.folder) == before, "a refusal changed the partition"
            return
        raise AssertionError(f"half a pair was taken for whole: {plan.directories}")

    def _recover_on_hive_3(self) -> None:
        """By its transactions nothing is taken back there.

        Unlike the product this lets several compactions of a partition wait for their cleaning.
        """
        metastore = self._partition.metastore
        for txn in metastore.silent:
            metastore.end(txn, State.ABORTED)
        for row in metastore.rows.values():
            if row.state is CompactionState.WORKING:
                metastore.move_row(row.id, CompactionState.FAILED)
        waiting = {staging_name(pool.token) for pool in self._waiting()}
        for name in [child.name for child in self._partition.folder.iterdir()]:
            if name.startswith("_acid_compaction_") and name not in waiting:
                publisher_on(self._storage).remove(name)

    def _waiting(self) -> list[RequestPool]:
        """The compactions whose lists of what they replaced are needed for their cleaning."""
        rows = self._partition.metastore.rows.values()
        pools = (RequestPool.parse(row.pool) for row in rows if row.state is CompactionState.READY_FOR_CLEANING)
        return [pool for pool in pools if pool is not None]

    def _is_locked(self) -> bool:
        return self._readers_are_open() or bool(self._partition.writers)


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file below a folder and its content's hash."""
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() if path.is_file() else "directory"
        for path in folder.rglob("*")
    }
