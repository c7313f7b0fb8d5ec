"""The product's compaction of a history's partition: plan, merge, publish by renames; without a metastore."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from airflow_provider_acid.acid.hive import HIVE_3
from airflow_provider_acid.compaction.publish.fence import check_inputs, verify_output
from airflow_provider_acid.compaction.publish.publisher import publisher_on
from airflow_provider_acid.compaction.publish.replaced import write_replaced
from airflow_provider_acid.compaction.publish.staging import open_staging, staging_name
from airflow_provider_acid.compaction.snapshot import TransactionView, take_snapshot
from airflow_provider_acid.exceptions import RefusedError, UnsupportedTableError
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from airflow_provider_acid.plan.partition import AttemptNames, CompactionPolicy, MinorPublication, PartitionState
from airflow_provider_acid.plan.plan import Column, CompactionPlan, CompactionType, CopiedStripes
from airflow_provider_acid.plan.planning import plan_compaction
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


@dataclass(frozen=True)
class _Running:
    """A compaction in work.

    :param replaced: what was obsolete or aborted when it was planned, and what it merged. Names of Hive 3 do not say
        which compaction made a directory, so that a later one's result would count in an earlier one's cleaning.
    """

    plan: CompactionPlan
    pool: RequestPool
    txn: int
    replaced: frozenset[str]


class Compactor:
    """At most one compaction at a time.

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
        self.done: list[CompactionPlan] = []

    @property
    def is_running(self) -> bool:
        """Whether a compaction has its lock, which keeps INSERT OVERWRITE away."""
        return self._running is not None

    def start(self, wanted: CompactionType) -> str:
        """Recover, take a snapshot, plan; what came of it, in words."""
        partition = self._partition
        if self._running or partition.overwriter or not self._recover():
            return "cannot start"
        self._attempts += 1
        pool = RequestPool(_OWNER, f"{self._attempts:016x}")
        txn = partition.client.open_compaction_txn(str(pool))
        partition.client.lock_shared_read(txn, ENTITY, str(pool))
        before = fingerprint(partition.folder)
        try:
            plan, replaced = self._plan(wanted, txn)
        except RefusedError as error:
            if error.remedy != _NOTHING_TO_DO:
                raise
            partition.metastore.end(txn, State.ABORTED)
            is_unchanged = partition.looks.were_disturbed or fingerprint(partition.folder) == before
            assert is_unchanged, "a refusal changed the partition"
            return f"refused: {error.reason}"
        open_staging(self._storage, plan)
        self._running = _Running(plan, pool, txn, replaced)
        return f"transaction {txn}: {plan.reason}; {', '.join(plan.directories)} -> {', '.join(plan.targets)}"

    def finish(self, death: Death) -> str:
        """Merge and publish what was started."""
        if self._running is None:
            return "nothing runs"
        running, plan, txn = self._running, self._running.plan, self._running.txn
        metastore = self._partition.metastore
        result = run_plainly(plan)
        assert result.error is None, f"the job failed: {result.error}"
        verify_output(self._storage, plan, result)
        check_inputs(self._storage, plan)
        self._running = None
        if death is Death.BEFORE_PUBLISHING or not self._may_publish(plan):
            metastore.end(txn, State.ABORTED)
            return "died before publishing, or did not get its lock"
        if death is Death.BETWEEN_RENAMES and len(plan.outputs) > 1:
            return self._die_between_renames(plan, txn)
        self._publish(plan)
        if death is Death.AFTER_PUBLISHING:
            metastore.end(txn, State.ABORTED)
            return "published, died before its commit"
        row = CompactionRow(
            0,
            ENTITY,
            plan.type.value,
            CompactionState.READY_FOR_CLEANING,
            pool=str(running.pool),
            start_ms=NOW_MS,
            highest_write_id=plan.high_water_mark,
            next_txn_id=metastore.txn_high_water_mark,
            commit_ms=NOW_MS,
            txn_id=txn,
            newest_lock_id=metastore.last_lock_id,
        )
        metastore.end(txn, State.COMMITTED)
        metastore.add_row(row)
        self.done.append(plan)
        publisher_on(self._storage).remove(plan.staging)
        if self._partition.kind.hive_version == 3:
            self._storage.make_directory(plan.staging)
            write_replaced(self._storage, plan.staging, running.replaced)
        return f"published {', '.join(plan.targets)}"

    def _plan(self, wanted: CompactionType, txn: int) -> tuple[CompactionPlan, frozenset[str]]:
        partition, storage = self._partition, self._storage
        hive = partition.kind.hive
        seen = take_snapshot(TransactionView(cast(Any, partition.client), txn), TABLE, storage, hive)
        directory = seen.directory
        token = f"{self._attempts:016x}"
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
        return plan, frozenset({*replaced, *(originals if plan.type is CompactionType.MAJOR else ())})

    def _mixed(self) -> MinorPublication:
        kind = self._partition.kind
        is_promised = kind.hive_version == 4 or kind.mixed is not MinorPublication.LOCK_FREE
        return kind.mixed if is_promised else MinorPublication.UNDER_LOCK

    def _may_publish(self, plan: CompactionPlan) -> bool:
        """An exclusive lock waits for all others; here it is not got while there are any."""
        needs_lock = len(plan.outputs) > 1 and self._mixed() is MinorPublication.UNDER_LOCK
        return not (needs_lock and self._is_locked())

    def _publish(self, plan: CompactionPlan) -> None:
        for number, output in enumerate(plan.outputs, start=1):
            self._storage.publish(plan.staged(output.kind), output.target)
            check_published(self._partition.folder / output.target)
            is_complete = number == len(plan.outputs)
            # Between two renames under an exclusive lock there is no reader at all.
            if is_complete or self._mixed() is MinorPublication.LOCK_FREE:
                self._published(is_complete)

    def _die_between_renames(self, plan: CompactionPlan, txn: int) -> str:
        """The half is taken back while the dead attempt's lock, if it had one, still keeps readers away."""
        first = plan.outputs[0]
        self._storage.publish(plan.staged(first.kind), first.target)
        if self._partition.kind.hive_version == 4:
            self._published(False)
        else:
            self._check_half_is_refused(txn)
        publisher_on(self._storage).remove(first.target)
        self._partition.metastore.end(txn, State.ABORTED)
        return f"died after it had published {first.target}"

    def _check_half_is_refused(self, txn: int) -> None:
        before = fingerprint(self._partition.folder)
        try:
            plan, _ = self._plan(CompactionType.MAJOR, txn)
        except UnsupportedTableError:
            assert fingerprint(self._partition.folder) == before, "a refusal changed the partition"
            return
        raise AssertionError(f"half a pair was taken for whole: {plan.directories}")

    def _recover(self) -> bool:
        """What a new attempt does about dead ones, whose transactions are aborted already; False where it must wait."""
        names = [child.name for child in self._partition.folder.iterdir()]
        endings = [f"_v{txn:07d}" for txn in self._partition.metastore.txns(State.ABORTED)]
        for ending in endings:
            published = sorted(name for name in names if name.endswith(ending))
            # Readers that ignore transactions would see half of a pair that is being removed.
            if len(published) > 1 and self._mixed() is not MinorPublication.LOCK_FREE and self._is_locked():
                return False
            for name in published:
                publisher_on(self._storage).remove(name)
        waiting = {staging_name(pool.token) for pool in self._waiting()}
        for name in names:
            if name.startswith("_acid_compaction_") and name not in waiting:
                publisher_on(self._storage).remove(name)
        return True

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
