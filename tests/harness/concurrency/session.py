"""A session with the metastore as Hive's drivers have it: locks that are waited for, snapshots of an earlier moment."""

from __future__ import annotations

import getpass
import time
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum

from hmsclient.genthrift.hive_metastore import ttypes
from thrift.transport.TTransport import TTransportException

from tests.harness.acid_reader import Snapshot
from tests.harness.concurrency.places import Place, RunTable
from tests.harness.current_rows import snapshot_of
from tests.harness.thrift_admin import ThriftAdmin
from tests.harness.thrift_answers import Transactions

LOCK_PATIENCE_SECONDS = 8.0
POLL_SECONDS = 0.03
MOST_QUESTIONS = 20
_EXCL_WRITE = 4  # of Hive 4; hmsclient knows the kinds of Hive 2

GONE_ERRORS = (ttypes.TxnAbortedException, ttypes.NoSuchTxnException, ttypes.NoSuchLockException)
"""What the metastore answers about a transaction that it aborted."""


class Access(Enum):
    """What a lock is for."""

    READ = ttypes.DataOperationType.SELECT
    INSERT = ttypes.DataOperationType.INSERT
    UPDATE = ttypes.DataOperationType.UPDATE
    DELETE = ttypes.DataOperationType.DELETE
    OVERWRITE = -1


class LockPatienceError(Exception):
    """A lock was not granted in time; the transaction has to be aborted."""


class Session(ThriftAdmin):
    """A connection of one thread."""

    def transactions(self) -> Transactions:
        """As every session's; asked again where Hive 4.0.1 breaks off, as it does while others open transactions.

        It wants to answer with transactions that have an id already but no owner, which the protocol does not allow.
        """
        for _ in range(MOST_QUESTIONS - 1):
            try:
                return super().transactions()
            except TTransportException:
                self._transport.close()
                self._transport.open()
        return super().transactions()

    def take_lock(
        self, transaction: int, places: Iterable[Place], access: Access, *, overwrites_exclusively: bool = True
    ) -> int:
        """The lock that Hive's own drivers take, waited for.

        :param overwrites_exclusively: ``hive.txn.xlock.iow`` of Hive 4; otherwise INSERT OVERWRITE lets others read.
        :raises LockPatienceError: it was not granted within :data:`LOCK_PATIENCE_SECONDS`.
        """
        kind = self._kind(access, overwrites_exclusively)
        operation = Access.UPDATE if access is Access.OVERWRITE else access
        components = [
            ttypes.LockComponent(
                type=kind,
                level=ttypes.LockLevel.PARTITION if place.partition else ttypes.LockLevel.TABLE,
                dbname=place.table.database,
                tablename=place.table.name,
                partitionname=place.partition,
                operationType=operation.value,
                isAcid=True,
            )
            for place in places
        ]
        request = ttypes.LockRequest(
            component=components, txnid=transaction, user=getpass.getuser(), hostname="localhost"
        )
        answer = self._client.lock(request)
        deadline = time.monotonic() + LOCK_PATIENCE_SECONDS
        while answer.state == ttypes.LockState.WAITING:
            if time.monotonic() > deadline:
                raise LockPatienceError(f"lock {answer.lockid} of transaction {transaction}: {access.name}")
            time.sleep(POLL_SECONDS)
            answer = self._client.check_lock(ttypes.CheckLockRequest(lockid=answer.lockid, txnid=transaction))
        assert answer.state == ttypes.LockState.ACQUIRED, answer
        return int(answer.lockid)

    def snapshot(self, table: RunTable, txns: Transactions, *, trino: bool = False) -> Snapshot:
        """What a reader of a table sees whose transactions these are; later ones it does not know.

        :param trino: by Trino's rules, not by those of the Hive whose metastore this is.
        """
        write_ids = self.write_ids(table.database, table.name, txns)
        return replace(
            snapshot_of(write_ids, txns, check_visibility=not trino),
            transaction_high_water_mark=txns.high_water_mark,
            deletes_of_own_bucket_only=trino or not self.is_hive_3,
            deletes_of_later_statements_only=not trino and not self.is_hive_3,
        )

    def _kind(self, access: Access, overwrites_exclusively: bool) -> int:
        if access in (Access.READ, Access.INSERT):
            return int(ttypes.LockType.SHARED_READ)
        if access is Access.OVERWRITE and (self.is_hive_3 or overwrites_exclusively):
            return int(ttypes.LockType.EXCLUSIVE)
        return int(ttypes.LockType.SHARED_WRITE) if self.is_hive_3 else _EXCL_WRITE
