"""Transactions, write ids and locks."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Sequence
from typing import Any

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.write_ids import TableWriteIds
from airflow_provider_acid.exceptions import MetastoreError, MetastoreUnavailableError, MetastoreVersionError
from airflow_provider_acid.metastore.thrift import structs
from airflow_provider_acid.metastore.thrift.connection import MetastoreConnection
from airflow_provider_acid.metastore.thrift.late import methods, ttypes
from airflow_provider_acid.metastore.thrift.wire import Struct
from airflow_provider_acid.metastore.values import LockAnswer, LockInfo, LockState, OpenTxns, TxnInfo, TxnState

AGENT = "airflow-provider-acid"

HOST_LENGTH = 128
"""What the column TXN_HOST holds."""

_OPENING_ATTEMPTS = 3
_OPENING_SECONDS = 1.1

_UNKNOWN_AGENT = "Unknown"
"""What a server sends that does not tell a transaction's agent info."""

_READ_ONLY = 2
_COMPACTION = 3
"""TxnType numbers of Hive 4."""

_DURATION = re.compile(r"([0-9]+)\s*([a-z]*)")
_UNITS = (
    ("s", "sec", 1.0),
    ("ms", "msec", 0.001),
    ("m", "min", 60.0),
    ("us", "usec", 1e-6),
    ("ns", "nsec", 1e-9),
    ("h", "hour", 3600.0),
    ("d", "day", 86400.0),
)
"""By name, or by the begin of a longer one, as Hive takes them (``MetastoreConf``), and in seconds."""

DEFAULT_TXN_TIMEOUT_SECONDS = 300.0
"""Hive's default of ``metastore.txn.timeout``."""

POOL_TIMEOUT = "hive.compactor.worker.pool.timeout"
"""A setting that has a default wherever requests can be of a pool."""

DEFAULT_POOL_TIMEOUT_SECONDS = 43_200.0
"""Hive's default of :data:`POOL_TIMEOUT`."""

_TXN_STATES = {1: TxnState.COMMITTED_OR_UNKNOWN, 2: TxnState.ABORTED, 3: TxnState.OPEN}
"""By Hive's TxnState."""
_LOCK_STATES = {1: LockState.ACQUIRED, 2: LockState.WAITING, 3: LockState.ABORT, 4: LockState.NOT_ACQUIRED}
"""By Hive's LockState."""
_LOCK_TYPES = {1: "SHARED_READ", 2: "SHARED_WRITE", 3: "EXCLUSIVE", 4: "EXCL_WRITE"}


WRITE_IDS_PER_CALL = 100
"""Tables whose write ids are asked for at once; a server looks at one after the other, and a call has a time-out."""


class TransactionCalls(MetastoreConnection):
    """Transactions, write ids and locks."""

    _tells_types = True
    """Whether the server knows types of transactions, as Hive 4 does; believed until it says otherwise."""

    def open_transactions(self) -> OpenTxns:
        """The transactions of every type that are open or aborted now."""
        answer = self._open_txns()
        open_ids, aborted_ids = split_by_bits(answer.open_txns, answer.aborted_bits)
        return OpenTxns(answer.txn_high_water_mark, open_ids, aborted_ids, min(open_ids, default=None))

    def _open_txns(self) -> Any:
        """The server's answer, with the types that Hive 4 leaves out unless it is told to leave out none.

        Those are READ_ONLY ones (``hive.txn.readonly.enabled``), whose queries need their files like all others.
        """
        if self._tells_types:
            try:
                every_type = structs.GetOpenTxnsRequest(exclude_txn_types=[])
                return self._invoke("open transactions", methods.GET_OPEN_TXNS_REQ, every_type, repeatable=True)
            except MetastoreVersionError:
                self._tells_types = False
        return self._invoke("open transactions", methods.GET_OPEN_TXNS, repeatable=True)

    def transactions(self) -> list[TxnInfo]:
        """Open and aborted transactions with owner and times, by id.

        Hive 4.0.1 keeps a transaction's agent info to itself; that of its locks stands in for it, so that a
        transaction without a lock, as every aborted one is, has none.
        """
        answer = self._open_txns_info()
        agents = {lock.txn_id: lock.agent_info for lock in self.show_locks()} if answer.open_txns else {}
        return sorted((txn_of(info, agents.get(info.id)) for info in answer.open_txns), key=lambda txn: txn.id)

    def _open_txns_info(self) -> Any:
        """The server's answer, asked for again after a while where it breaks off.

        Hive 4.0.1 puts a nameless entry into the list for a transaction id that was given out but is not stored: one
        that is just being opened, or was when the metastore died. It then cannot write its own answer and hangs up;
        after ``metastore.txn.opentxn.timeout`` (1 s) the entry is gone.
        """
        for _ in range(_OPENING_ATTEMPTS):
            try:
                return self._invoke("open transactions", methods.GET_OPEN_TXNS_INFO, repeatable=True)
            except MetastoreUnavailableError as error:
                broken = error
                # A metastore that does not answer at all is not waited for.
                self.open_transactions()
                time.sleep(_OPENING_SECONDS)
        raise broken

    def transaction_state(self, txn_id: int) -> TxnState:
        """What the metastore knows about a transaction; a committed one cannot be told from an unknown one."""
        return self.open_transactions().state_of(txn_id)

    def valid_write_ids(self, full_table_names: Sequence[str], valid_txn_list: str) -> list[TableWriteIds]:
        """Write ids of tables as seen by a list of valid transactions, one value per name, in that order.

        :param full_table_names: ``database.table`` each.
        :param valid_txn_list: text form of a ValidTxnList with plain ids; never empty, which would mean that every
            transaction counts as committed.
        :raises OwnershipLostError: the list names a transaction that the metastore does not know.
        """
        if not valid_txn_list:
            raise MetastoreError(
                "valid write ids", "asked for without a transaction list", "take it from open_transactions()"
            )
        names = [name.lower() for name in full_table_names]
        by_name: dict[str, TableWriteIds] = {}
        # By the same list of transactions all calls see the same, whatever ends between them.
        for start in range(0, len(names), WRITE_IDS_PER_CALL):
            some = names[start : start + WRITE_IDS_PER_CALL]
            request = structs.GetValidWriteIdsRequest(full_table_names=some, valid_txn_list=valid_txn_list)
            subject = f"write ids of {', '.join(some)}"
            answer = self._invoke(subject, methods.GET_VALID_WRITE_IDS, request, repeatable=True)
            by_name |= {table.full_table_name.lower(): _write_ids(table) for table in answer.tables}
        missing = [name for name in names if name not in by_name]
        if missing:
            raise MetastoreError(f"table {missing[0]}", "the metastore gave no write ids for it", "report this")
        return [by_name[name] for name in names]

    def open_compaction_txn(self, agent_info: str = AGENT) -> int:
        """Open a transaction of type COMPACTION.

        :param agent_info: who opens it. Hive 4.0.1 keeps it but does not tell it, so it is also put before the host's
            name, which SHOW TRANSACTIONS tells of open and aborted transactions alike.

        Not repeated when its answer gets lost: such a transaction is aborted by its time-out.
        """
        return self._open_txn(_COMPACTION, agent_info)

    def commit(self, txn_id: int) -> None:
        """Commit a transaction. Not repeated when its answer gets lost: look at the transaction then.

        :raises OwnershipLostError: it is aborted or unknown.
        """
        request = ttypes.CommitTxnRequest(txnid=txn_id)
        self._invoke(f"transaction {txn_id}", methods.COMMIT_TXN, request, repeatable=False)

    def abort(self, txn_id: int) -> None:
        """Abort a transaction.

        :raises OwnershipLostError: it is unknown, or ended already.
        """
        request = ttypes.AbortTxnRequest(txnid=txn_id)
        self._invoke(f"transaction {txn_id}", methods.ABORT_TXN, request, repeatable=True)

    def heartbeat(self, txn_id: int) -> None:
        """Keep a transaction and its locks alive.

        :raises OwnershipLostError: it is aborted or unknown.
        """
        request = ttypes.HeartbeatRequest(txnid=txn_id)
        self._invoke(f"transaction {txn_id}", methods.HEARTBEAT, request, repeatable=True)

    def allocate_write_id(self, txn_id: int, entity: Entity) -> None:
        """Give a transaction its write id in an entity's table; it keeps the one that it has.

        :raises OwnershipLostError: the transaction is aborted or unknown.
        """
        request = structs.AllocateTableWriteIdsRequest(database=entity.database, table=entity.table, txn_ids=[txn_id])
        subject = f"write id of transaction {txn_id}"
        self._invoke(subject, methods.ALLOCATE_TABLE_WRITE_IDS, request, repeatable=True)

    def txn_timeout_seconds(self) -> float:
        """After how long without a heartbeat the metastore aborts a transaction (``metastore.txn.timeout``)."""
        for name in ("metastore.txn.timeout", "hive.txn.timeout"):
            text = self.config_value(name)
            if text:
                return duration_seconds(text)
        return DEFAULT_TXN_TIMEOUT_SECONDS

    def pool_timeout_seconds(self) -> float:
        """After how long a request of any pool is handed out to whoever names none (Hive 4)."""
        text = self.config_value(POOL_TIMEOUT)
        return duration_seconds(text) if text else DEFAULT_POOL_TIMEOUT_SECONDS

    def server_now_ms(self) -> int:
        """The metastore database's clock, in milliseconds since 1970.

        No call tells it, so a read-only transaction is opened, its start time read, and the transaction committed:
        for occasional use.
        """
        txn_id = self._open_txn(_READ_ONLY)
        try:
            started = next((txn.started_ms for txn in self.transactions() if txn.id == txn_id), None)
        finally:
            self.commit(txn_id)
        if started is None:
            raise MetastoreError(f"transaction {txn_id}", "the metastore does not say when it started", "report this")
        return started

    def lock_shared_read(self, txn_id: int, entity: Entity, agent_info: str = AGENT) -> LockAnswer:
        """Ask for a shared read lock that keeps DROP, TRUNCATE and INSERT OVERWRITE away, not other writers.

        The operation type SELECT keeps the lock from being recorded as a write of the transaction (Hive's
        ``TxnHandler.enqueueLock``). Not repeated when its answer gets lost: abort the transaction then.

        :param agent_info: shown with the lock, at most 128 characters; the one text by which a transaction whose
            owner died before recording it can be attributed.
        :raises OwnershipLostError: the transaction is aborted or unknown.
        """
        return self._lock(txn_id, [entity], ttypes.LockType.SHARED_READ, ttypes.DataOperationType.SELECT, agent_info)

    def lock_exclusive(self, txn_id: int, *entities: Entity, agent_info: str = AGENT) -> LockAnswer:
        """Ask for a lock that keeps every reader and writer away that takes locks; on several, for all or none.

        Locks of one transaction do not stand in each other's way. The operation type NO_TXN, which Hive uses for DDL,
        keeps the lock from being recorded as a write of the transaction. While it waits, locks that others ask for
        after it wait behind it, those of readers too. Not repeated when its answer gets lost: abort the transaction
        then, which is also what withdraws it.

        :raises OwnershipLostError: the transaction is aborted or unknown.
        """
        return self._lock(txn_id, entities, ttypes.LockType.EXCLUSIVE, ttypes.DataOperationType.NO_TXN, agent_info)

    def _lock(
        self, txn_id: int, entities: Sequence[Entity], lock_type: int, operation: int, agent_info: str
    ) -> LockAnswer:
        components = [
            ttypes.LockComponent(
                type=lock_type,
                level=ttypes.LockLevel.PARTITION if entity.partition else ttypes.LockLevel.TABLE,
                dbname=entity.database,
                tablename=entity.table,
                partitionname=entity.partition,
                operationType=operation,
                isAcid=True,
            )
            for entity in entities
        ]
        request = ttypes.LockRequest(
            component=components, txnid=txn_id, user=self.user, hostname=socket.gethostname(), agentInfo=agent_info
        )
        subject = f"lock on {', '.join(map(str, entities))}"
        return lock_answer(self._invoke(subject, methods.LOCK, request, repeatable=False))

    def check_lock(self, lock_id: int, txn_id: int | None = None) -> LockAnswer:
        """Ask again for a lock that was waiting.

        :raises OwnershipLostError: the lock or its transaction is gone.
        """
        request = ttypes.CheckLockRequest(lockid=lock_id, txnid=txn_id)
        return lock_answer(self._invoke(f"lock {lock_id}", methods.CHECK_LOCK, request, repeatable=True))

    def show_locks(self, entity: Entity | None = None) -> list[LockInfo]:
        """Locks held or waited for: all, or those that touch ``entity``.

        Partitions are compared here and not by the server, which compares spellings; see :meth:`LockInfo.touches`.
        """
        request = ttypes.ShowLocksRequest(dbname=entity.database if entity else None)
        answer = self._invoke(f"locks on {entity or 'anything'}", methods.SHOW_LOCKS, request, repeatable=True)
        locks = [lock_of(lock) for lock in answer.locks or ()]
        return [lock for lock in locks if entity is None or lock.touches(entity)]

    def _open_txn(self, txn_type: int, agent_info: str = AGENT) -> int:
        request = structs.OpenTxnRequest(
            num_txns=1, user=self.user, hostname=_host(agent_info), agent_info=agent_info, txn_type=txn_type
        )
        answer = self._invoke("new transaction", methods.OPEN_TXNS, request, repeatable=False)
        if not answer.txn_ids:
            raise MetastoreError("new transaction", "the metastore opened none", "look at the metastore's log")
        return int(answer.txn_ids[0])

    def config_value(self, name: str) -> str:
        """A setting of the server, asked once; empty where it is not set and has no default."""
        if name not in self._config:
            value = self._invoke(f"setting {name}", methods.GET_CONFIG_VALUE, name, "", repeatable=True)
            self._config[name] = str(value)
        return self._config[name]


def _host(agent_info: str) -> str:
    host = socket.gethostname()
    return host if agent_info == AGENT else f"{agent_info}@{host}"[:HOST_LENGTH]


def split_by_bits(ids: Sequence[int], aborted_bits: bytes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Split ids into open and aborted ones; bit i (little-endian, as Java's BitSet) is set where id i is aborted."""

    def is_aborted(index: int) -> bool:
        byte, bit = divmod(index, 8)
        return byte < len(aborted_bits) and bool(aborted_bits[byte] >> bit & 1)

    aborted = {id for index, id in enumerate(ids) if is_aborted(index)}
    return tuple(sorted(set(ids) - aborted)), tuple(sorted(aborted))


def duration_seconds(text: str) -> float:
    """A Hive time setting such as ``300s`` or ``5 minutes`` in seconds; a bare number is in seconds."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is not None:
        for unit, begin, seconds in _UNITS:
            if (match[2] or "s") == unit or match[2].startswith(begin):
                return int(match[1]) * seconds
    raise MetastoreError("setting metastore.txn.timeout", f"has the unknown form {text!r}", "write it like 300s")


def _write_ids(table: Struct) -> TableWriteIds:
    open_ids, aborted_ids = split_by_bits(table.invalid_write_ids, table.aborted_bits)
    return TableWriteIds(
        full_table_name=table.full_table_name,
        high_water_mark=table.write_id_high_water_mark,
        open=frozenset(open_ids),
        aborted=frozenset(aborted_ids),
        min_open=min(open_ids, default=None),
    )


def txn_of(info: Struct, agent_of_lock: str | None) -> TxnInfo:
    """A transaction as the server lists it; a lock of it may tell more of its agent."""
    return TxnInfo(
        id=info.id,
        # A state of a newer server: as long as it is listed, it may hold something.
        state=_TXN_STATES.get(info.state, TxnState.OPEN),
        user=info.user,
        host=info.hostname,
        agent_info=agent_of_lock if info.agentInfo in (None, _UNKNOWN_AGENT) else info.agentInfo,
        started_ms=info.startedTime,
        last_heartbeat_ms=info.lastHeartbeatTime,
    )


def lock_answer(answer: Struct) -> LockAnswer:
    """The server's word on a lock that was asked for."""
    return LockAnswer(answer.lock_id, _LOCK_STATES.get(answer.state, LockState.NOT_ACQUIRED), answer.error_message)


def lock_of(lock: Struct) -> LockInfo:
    """A lock as the server lists it."""
    return LockInfo(
        lock_id=lock.lockid,
        database=lock.dbname,
        entity=Entity(lock.dbname, lock.tablename, lock.partname) if lock.tablename else None,
        # A state of a newer server: somebody else may well have it.
        state=_LOCK_STATES.get(lock.state, LockState.ACQUIRED),
        type=_LOCK_TYPES.get(lock.type, f"type {lock.type}"),
        txn_id=lock.txnid or None,
        user=lock.user,
        host=lock.hostname,
        acquired_ms=lock.acquiredat or None,
        last_heartbeat_ms=lock.lastheartbeat or None,
        agent_info=lock.agentInfo,
    )
