"""Two committed results of one range of write ids: told which of them is whole, and on demand the other is removed.

Readers read both (:mod:`~airflow_provider_acid.plan.twins`), so that rows come twice until one goes. Which one may go
is proven by their rows (:mod:`~airflow_provider_acid.merge.twin_rows`). Of equal ones the newer transaction's stays:
Hive 4.2 reads the newer delta alone, and its Cleaner deletes the older one, without a lock. Where only the older one
is whole, nothing is removed while a Cleaner may be at work in the partition, for it might take that one.

Whoever began before the result that stays was committed sees only the one that goes. So the remover's transaction
waits, first until every transaction that is older has ended, then for the EXCLUSIVE lock. Whoever begins later sees the
one that stays. Under the lock it looks again; nobody writes to a result, so that what was proven still holds where its
files are the same.

A delta and a delete delta of one transaction are one result: they stay both, or go both. One directory is removed after
the other, as a withdrawal does it: where there are renames by one, else file by file, data first. Dead half-way, the
next look finds a result that the other contains, and goes on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.row_cleaner import check_may_delete
from airflow_provider_acid.compaction.clean.wait import OPENING_SECONDS
from airflow_provider_acid.compaction.exclusive_lock import POLL_SECONDS, wait_for_exclusive
from airflow_provider_acid.compaction.facts import EntityFacts, load_facts
from airflow_provider_acid.compaction.housekeep.report import Chore, Deed, Stuck, StuckKind
from airflow_provider_acid.compaction.neighbours import Neighbours
from airflow_provider_acid.compaction.publish.publisher import publisher_on
from airflow_provider_acid.compaction.recover.attempts import nobodys_pool, pool_of_txn
from airflow_provider_acid.compaction.recover.withdrawal import end_dead_lockers, removers_transaction
from airflow_provider_acid.compaction.settings import LOCK_QUEUE_SECONDS, CompactionSettings
from airflow_provider_acid.compaction.snapshot import Snapshot, TransactionView, take_snapshot
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.exceptions import AcidError, MetastoreUnavailableError, OwnershipLostError, RefusedError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import CompactionState, TxnState
from airflow_provider_acid.plan.twins import Result, find_twins, names_of, pair_of_compactions

if TYPE_CHECKING:
    from airflow_provider_acid.merge.twin_rows import Compared

log = logging.getLogger(__name__)

_Group = tuple[Result, ...]


@dataclass(frozen=True)
class _Proof:
    """That one of two holds all that the other holds."""

    group: _Group
    whole: Result
    redundant: Result
    compared: Compared

    def __str__(self) -> str:
        extra = self.compared.only_one + self.compared.only_other
        more = f", and {extra} more" if extra else ""
        return f"all {self.compared.common} of {self.redundant} are in {self.whole}{more}"


class TwinResults:
    """Looks after twins of one partition after the other; belongs to one thread, like its client.

    :param repair: whether it removes what is proven to be redundant; else it changes nothing.
    """

    def __init__(
        self, client: AcidMetastoreClient, queue: CompactionQueue, settings: CompactionSettings, *, repair: bool
    ) -> None:
        self._client = client
        self._queue = queue
        self._settings = settings
        self._repair = repair

    def look_after(self, entity: Entity) -> Iterator[Deed | Stuck]:
        """What was done about each pair, or should be.

        :raises AcidError: the partition cannot be looked at.
        """
        facts = load_facts(self._client, entity)
        storage = self._settings.storages.open(facts.location)
        snapshot = self._look(facts, storage)
        for group in find_twins(snapshot.directory.deltas):
            try:
                with Supervised(entity):
                    yield self._look_after_group(facts, storage, snapshot, group)
            except MetastoreUnavailableError:
                raise
            except AcidError as error:
                yield _stuck(entity, f"{names_of(group)} stay, and readers see rows of both: {error}")

    def _look(self, facts: EntityFacts, storage: Storage) -> Snapshot:
        insert_only = facts.table.is_insert_only
        view = TransactionView(self._client, None)
        return take_snapshot(view, facts.table.full_table_name, storage, self._queue.hive, insert_only=insert_only)

    def _look_after_group(
        self, facts: EntityFacts, storage: Storage, snapshot: Snapshot, group: _Group
    ) -> Deed | Stuck:
        proof = _prove(storage, snapshot, group, insert_only=facts.table.is_insert_only)
        if not self._repair:
            return _stuck(facts.entity, f"{proof}; with repair_twins {proof.redundant} would be removed")
        waits = self._remove(facts, storage, proof)
        if waits is not None:
            return _stuck(facts.entity, f"{proof}; {proof.redundant} is not removed yet, and waits for {waits}")
        return Deed(facts.entity, Chore.TWIN_REMOVED, f"{proof.redundant}: {proof}")

    def _remove(self, facts: EntityFacts, storage: Storage, proof: _Proof) -> str | None:
        """Remove the redundant one.

        :returns: what that waits for, in one clause, and nothing was changed; None where it is gone.
        :raises OwnershipLostError: the lock was lost, or the partition is not what was looked at.
        """
        check_may_delete(facts)
        exclusive = self._settings.exclusive_locations
        Neighbours(self._client, self._queue.database, exclusive).check(facts.table, facts.partition)
        end_dead_lockers(self._client, self._settings, facts.entity, None)
        wait_seconds = self._settings.minor_lock_wait_seconds
        asker = str(nobodys_pool(facts.entity))
        transaction = removers_transaction(self._client, self._settings, facts.entity, asker)
        try:
            transaction.start()
        except RefusedError as error:
            return error.reason
        with closing(transaction):
            waits = self._wait_for_older(transaction, wait_seconds)
            waits = waits or wait_for_exclusive(transaction, wait_seconds, LOCK_QUEUE_SECONDS)
            if waits is None:
                snapshot = self._look(facts, storage)
                _check_unchanged(facts.entity, snapshot, proof)
                waits = self._who_cleans(facts.entity, snapshot, proof)
            if waits is None:
                transaction.verify()
                log.info("%s: removing %s, for %s", facts.entity, proof.redundant, proof)
                for delta in proof.redundant.deltas:
                    transaction.check()
                    publisher_on(storage).remove(delta.path)
                # Lost only now, it has served.
                with suppress(OwnershipLostError):
                    transaction.commit()
            return waits

    def _wait_for_older(self, transaction: CompactionTransaction, wait_seconds: float) -> str | None:
        """Wait until everybody has ended who began before the transaction, but for other compactions of ours.

        Those take their snapshots after their locks, beside which the EXCLUSIVE one is not granted.

        :returns: who has not, in one clause; None where all have.
        """
        deadline = time.monotonic() + wait_seconds
        # One that has an id already may not be listed yet.
        time.sleep(OPENING_SECONDS)
        while True:
            older = [
                txn
                for txn in self._client.transactions()
                if txn.state is TxnState.OPEN and txn.id < transaction.txn_id and pool_of_txn(txn) is None
            ]
            transaction.check()
            if not older:
                return None
            if time.monotonic() >= deadline:
                txn = older[0]
                return f"transaction {txn.id} of {txn.user}@{txn.host}, which may have begun before both were committed"
            time.sleep(POLL_SECONDS)

    def _who_cleans(self, entity: Entity, snapshot: Snapshot, proof: _Proof) -> str | None:
        """What may make Hive's Cleaner take away the one that stays; None where nothing does."""
        if proof.whole.txn_id > proof.redundant.txn_id:
            return None
        for row in self._queue.rows(entity=entity):
            if row.state in (CompactionState.WORKING, CompactionState.READY_FOR_CLEANING):
                return f"request {row.id}, which is {row.state.value}: Hive's Cleaner may delete the older one"
        if snapshot.write_ids.aborted:
            aborted = ", ".join(map(str, snapshot.write_ids.aborted[:5]))
            return f"the cleaning of the aborted write ids {aborted}: Hive's Cleaner may delete the older one"
        return None


def _check_unchanged(entity: Entity, snapshot: Snapshot, proof: _Proof) -> None:
    if proof.group not in find_twins(snapshot.directory.deltas):
        raise OwnershipLostError(
            f"{names_of(proof.group)} of {entity}",
            "are not what they were when their rows were compared",
            "let the next round look again; nothing was changed",
        )


def _prove(storage: Storage, snapshot: Snapshot, group: _Group, *, insert_only: bool) -> _Proof:
    # It reads ORC, with pyarrow and pyorc, which a DAG file does without.
    from airflow_provider_acid.merge.twin_rows import compare_files, compare_rows

    one, other = pair_of_compactions(group)
    if insert_only:
        compared = compare_files(storage, one, other)
    else:
        compared = compare_rows(storage, one, other, snapshot.write_ids.is_write_id_valid)
    return _Proof(group, *((one, other) if compared.only_one else (other, one)), compared)


def _stuck(entity: Entity, message: str) -> Stuck:
    return Stuck(StuckKind.TWINS, str(entity), None, message)
