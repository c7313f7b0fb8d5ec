"""A compaction's transaction with its locks and heartbeats."""

from __future__ import annotations

import logging
import time
from types import TracebackType

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import (
    ConfigurationError,
    MetastoreError,
    MetastoreUnavailableError,
    OwnershipLostError,
)
from airflow_provider_acid.metastore.heartbeat import Heartbeat
from airflow_provider_acid.metastore.locks import LOCK_WAIT_SECONDS, acquire_shared_read, describe_blockers
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.txns import AGENT
from airflow_provider_acid.metastore.values import LockInfo, LockState, TxnState

log = logging.getLogger(__name__)


class CompactionTransaction:
    """A transaction of type COMPACTION that holds a shared read lock on what is compacted, and is kept alive.

    As a context manager, or by :meth:`start` and :meth:`close` where several are open at once. Whoever ends without
    :meth:`commit` aborts. All methods are for the thread that owns ``client``; heartbeats use a client of their own.

    :param client: the caller's client.
    :param entity: what is locked.
    :param heartbeat_seconds: pause between heartbeats; half the time-out by default, as Hive does.
    :param txn_timeout_seconds: the transaction's time-out; asked of the metastore by default.
    :param lock_wait_seconds: how long to wait for the lock.
    :param agent_info: shown with the lock by SHOW LOCKS; name the attempt here, so that its successor can find the
        transaction even if the attempt died before recording it in the queue.
    """

    def __init__(
        self,
        client: AcidMetastoreClient,
        entity: Entity,
        *,
        heartbeat_seconds: float | None = None,
        txn_timeout_seconds: float | None = None,
        lock_wait_seconds: float = LOCK_WAIT_SECONDS,
        agent_info: str = AGENT,
    ) -> None:
        self.entity = entity
        self._client = client
        self._heartbeat_seconds = heartbeat_seconds
        self._txn_timeout_seconds = txn_timeout_seconds
        self._lock_wait_seconds = lock_wait_seconds
        self._agent_info = agent_info
        self._txn_id: int | None = None
        self._heartbeat: Heartbeat | None = None
        self._lock_id: int | None = None
        self._exclusive_lock_id: int | None = None
        self._is_closed = False

    def __enter__(self) -> CompactionTransaction:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def txn_id(self) -> int:
        """The transaction's id.

        :raises ConfigurationError: it was not started.
        """
        if self._txn_id is None:
            raise self._misused("was not started")
        return self._txn_id

    @property
    def lock_id(self) -> int:
        """The lock's id.

        :raises ConfigurationError: it was not started.
        """
        if self._lock_id is None:
            raise self._misused("holds no lock")
        return self._lock_id

    def start(self) -> CompactionTransaction:
        """Open the transaction, begin to beat, take the lock.

        :raises RefusedError: the lock was not granted in time; the transaction is aborted.
        :raises MetastoreUnavailableError: no metastore answers.
        """
        if self._txn_id is not None:
            raise self._misused("was started already")
        timeout_seconds = self._txn_timeout_seconds or self._client.txn_timeout_seconds()
        interval_seconds = self._heartbeat_seconds or timeout_seconds / 2
        opened = time.monotonic()
        self._txn_id = self._client.open_compaction_txn(self._agent_info)
        try:
            self._heartbeat = Heartbeat(
                self._client.for_another_thread(),
                self._txn_id,
                interval_seconds=interval_seconds,
                timeout_seconds=timeout_seconds,
                last_good=opened,
            )
            self._heartbeat.start()
            self._lock_id = acquire_shared_read(
                self._client, self._txn_id, self.entity, self._agent_info, wait_seconds=self._lock_wait_seconds
            )
        except BaseException:
            self.close()
            raise
        return self

    @property
    def exclusive_lock_id(self) -> int | None:
        """Id of the exclusive lock; None where it was not asked for."""
        return self._exclusive_lock_id

    def others_hold_locks(self, newest_txn_id: int) -> bool:
        """Whether another transaction that is not newer than ``newest_txn_id`` has a lock that touches the entity."""
        self.check()
        return any(lock.txn_id is None or lock.txn_id <= newest_txn_id for lock in self._others_locks())

    def is_alone(self) -> bool:
        """Whether nobody else has, or waits for, a lock that touches the entity."""
        self.check()
        return not self._others_locks()

    def ask_exclusive(self) -> None:
        """Ask for an exclusive lock on the same entity; it is withdrawn by ending the transaction only.

        :raises OwnershipLostError: the transaction is aborted or unknown.
        """
        self.check()
        answer = self._client.lock_exclusive(self.txn_id, self.entity, agent_info=self._agent_info)
        self._exclusive_lock_id = answer.lock_id

    def has_exclusive(self) -> bool:
        """Whether the exclusive lock that was asked for is granted by now.

        :raises OwnershipLostError: the transaction is aborted or unknown.
        """
        self.check()
        if self._exclusive_lock_id is None:
            raise self._misused("did not ask for an exclusive lock")
        if self._client.check_lock(self._exclusive_lock_id, self.txn_id).state is not LockState.ACQUIRED:
            return False
        # Hive 3.1 passes over every lock that is older than the transaction's own shared one.
        return all(lock.state is not LockState.ACQUIRED or lock.only_keeps_a_database for lock in self._others_locks())

    def _others_locks(self) -> list[LockInfo]:
        """Locks that others hold or wait for, and that touch the entity."""
        return [lock for lock in self._client.show_locks(self.entity) if lock.txn_id != self.txn_id]

    def blockers(self) -> str:
        """The locks that the exclusive one waits for, with owner and age."""
        return describe_blockers(self._client, self.txn_id, self._exclusive_lock_id, self.entity)

    def check(self) -> None:
        """Do nothing while transaction and lock are ours, as far as the heartbeats know.

        :raises OwnershipLostError: they are lost.
        """
        self._beating.check()
        if self._is_closed:
            raise self._misused("has ended")

    def verify(self) -> None:
        """Ask the server whether transaction and locks are still ours; an exclusive one that was asked for as well.

        To a server, a look at a transaction's lock is a heartbeat of both (``TxnHandler.checkLock``).

        :raises OwnershipLostError: they are not.
        """
        self.check()
        try:
            shared = self._client.check_lock(self.lock_id, self.txn_id)
        except OwnershipLostError as error:
            # Of one that was aborted, a server knows the lock no more.
            raise OwnershipLostError(
                f"transaction {self.txn_id} on {self.entity}",
                f"was aborted, or lost its lock ({error.reason})",
                "start the attempt again",
            ) from error
        if shared.state is not LockState.ACQUIRED:
            raise self._lost(self.lock_id, f"is {shared.state.value}")
        if self._exclusive_lock_id is not None and not self.has_exclusive():
            raise self._lost(self._exclusive_lock_id, "is waiting")

    def _lost(self, lock_id: int, reason: str) -> OwnershipLostError:
        return OwnershipLostError(f"lock {lock_id} on {self.entity}", reason, "start the attempt again")

    def allocate_write_id(self) -> None:
        """Write to the table without writing anything: from the commit on its valid write id list is another one.

        Readers that keep a listing by that list then list again.

        :raises OwnershipLostError: the transaction is aborted or unknown.
        """
        self.check()
        self._client.allocate_write_id(self.txn_id, self.entity)

    def commit(self) -> None:
        """Stop beating and commit.

        :raises OwnershipLostError: the transaction is aborted; nothing it published is visible.
        :raises MetastoreUnavailableError: whether it is committed is unknown; the queue row tells, by its commit
            time, once a metastore answers.
        """
        self.check()
        self._beating.stop()
        try:
            self._client.commit(self.txn_id)
        except MetastoreUnavailableError as lost_answer:
            self._commit_after(lost_answer)
        self._is_closed = True

    def close(self) -> None:
        """Stop beating and, unless committed, abort. Never raises an error of the metastore; repeatable."""
        if self._txn_id is None or self._is_closed:
            return
        self._is_closed = True
        if self._heartbeat is not None:
            self._heartbeat.stop()
        try:
            self._client.abort(self._txn_id)
        except (MetastoreError, OwnershipLostError) as error:
            log.warning("Transaction %s on %s could not be aborted: %s", self.txn_id, self.entity, error)

    def _commit_after(self, lost_answer: MetastoreUnavailableError) -> None:
        """Settle a commit whose answer got lost: Hive 4 accepts a second commit of a committed transaction."""
        if self._client.transaction_state(self.txn_id) is TxnState.ABORTED:
            raise OwnershipLostError(
                f"transaction {self.txn_id} on {self.entity}", "was aborted", "start the attempt again"
            ) from lost_answer
        try:
            self._client.commit(self.txn_id)
        except OwnershipLostError as error:
            raise lost_answer from error

    @property
    def _beating(self) -> Heartbeat:
        if self._heartbeat is None:
            raise self._misused("was not started")
        return self._heartbeat

    def _misused(self, reason: str) -> ConfigurationError:
        return ConfigurationError(f"transaction on {self.entity}", reason, "use one object per transaction")
