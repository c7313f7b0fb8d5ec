"""What the metastore knows, as frozen values without any Thrift in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from operator import itemgetter

from airflow_provider_acid.acid.entity import Entity, whatever_spelling

INSERT_ONLY = "insert_only"
"""Value of ``transactional_properties`` that makes a table insert-only."""


class CompactionState(str, Enum):
    """States of a compaction request, each with the text that Hive shows for it (Hive's ``TxnStore``)."""

    INITIATED = "initiated"
    WORKING = "working"
    READY_FOR_CLEANING = "ready for cleaning"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DID_NOT_INITIATE = "did not initiate"
    REFUSED = "refused"
    ABORTED = "aborted"
    UNKNOWN = "unknown"

    @classmethod
    def from_show_text(cls, text: str) -> CompactionState:
        """The state Hive shows as ``text``; Hive 3.1 says ``attempted`` where Hive 4 says ``did not initiate``."""
        if text == "attempted":
            return cls.DID_NOT_INITIATE
        try:
            return cls(text)
        except ValueError:
            return cls.UNKNOWN

    @property
    def is_terminal(self) -> bool:
        """Whether the row has left the queue and is history."""
        return self not in (self.INITIATED, self.WORKING, self.READY_FOR_CLEANING, self.UNKNOWN)


class TxnState(str, Enum):
    """What can be said about a transaction from the list of open ones."""

    OPEN = "open"
    ABORTED = "aborted"
    COMMITTED_OR_UNKNOWN = "committed or unknown"


class LockState(str, Enum):
    """States of a lock (Thrift enum LockState)."""

    ACQUIRED = "acquired"
    WAITING = "waiting"
    ABORT = "abort"
    NOT_ACQUIRED = "not acquired"


@dataclass(frozen=True)
class ColumnInfo:
    """A column or partition key; ``type`` is Hive's type text."""

    name: str
    type: str


@dataclass(frozen=True)
class DatabaseInfo:
    """A database.

    :param managed_location: URI of the folder of its managed tables, where one was chosen (Hive 4); else empty.
    """

    name: str
    parameters: Mapping[str, str]
    location: str
    managed_location: str = ""


@dataclass(frozen=True)
class SerdeInfo:
    """How rows are taken from and made into files.

    :param library: name of the Java class.
    :param parameters: SERDEPROPERTIES; delimiters and encoding of text are among them.
    """

    library: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TableInfo:
    """A table as the metastore describes it, never translated for a weaker client.

    :param bucket_count: declared number of buckets; -1 or 0 where the table declares none.
    :param write_id: write id of the last change of the table's metadata; None where the server does not say.
    :param stored_as_directories: list bucketing: SKEWED BY … STORED AS DIRECTORIES.
    """

    database: str
    name: str
    location: str
    columns: tuple[ColumnInfo, ...]
    partition_keys: tuple[ColumnInfo, ...]
    parameters: Mapping[str, str]
    bucket_count: int
    sort_columns: tuple[str, ...]
    table_type: str
    input_format: str
    owner: str
    write_id: int | None = None
    serde: SerdeInfo = SerdeInfo()
    stored_as_directories: bool = False

    @property
    def full_table_name(self) -> str:
        """``database.table`` in lower case, the key of write ids."""
        return f"{self.database}.{self.name}".lower()

    @property
    def is_transactional(self) -> bool:
        """Whether the table is ACID, full or insert-only (Hive's ``AcidUtils.isTransactionalTable``)."""
        return self._parameter("transactional") == "true"

    @cached_property
    def is_insert_only(self) -> bool:
        """Whether the table is an insert-only ACID table."""
        return self.is_transactional and self._parameter("transactional_properties") == INSERT_ONLY

    @property
    def is_external(self) -> bool:
        """Whether the table's files belong to somebody else."""
        return self.table_type == "EXTERNAL_TABLE" or self._parameter("external") == "true"

    def _parameter(self, name: str) -> str:
        """The parameter in lower case; Hive accepts ``name`` in lower and in upper case."""
        return (self.parameters.get(name) or self.parameters.get(name.upper()) or "").lower()


@dataclass(frozen=True)
class PartitionInfo:
    """A partition; ``name`` is spelled as the metastore spells it (values escaped, case kept).

    :param input_format: the partition's own, which ALTER TABLE does not change with the table's.
    """

    name: str
    values: tuple[str, ...]
    location: str
    parameters: Mapping[str, str]
    sort_columns: tuple[str, ...]
    input_format: str = ""
    serde: SerdeInfo = SerdeInfo()
    stored_as_directories: bool = False


@dataclass(frozen=True)
class OpenTxns:
    """Transactions that are open or aborted.

    :param high_water_mark: highest transaction id handed out.
    :param open: open ids, ascending.
    :param aborted: aborted ids whose records still exist, ascending.
    :param min_open: lowest open id; None where none is open.
    """

    high_water_mark: int
    open: tuple[int, ...]
    aborted: tuple[int, ...]
    min_open: int | None

    def state_of(self, txn_id: int) -> TxnState:
        """What the list says about ``txn_id``."""
        if txn_id in self.open:
            return TxnState.OPEN
        return TxnState.ABORTED if txn_id in self.aborted else TxnState.COMMITTED_OR_UNKNOWN


@dataclass(frozen=True)
class TxnInfo:
    """An open or aborted transaction; times are milliseconds of the metastore database's clock."""

    id: int
    state: TxnState
    user: str
    host: str
    agent_info: str | None
    started_ms: int | None
    last_heartbeat_ms: int | None


@dataclass(frozen=True)
class LockInfo:
    """A lock, held or waited for.

    :param entity: None for a lock on a whole database. Hive 3.1 spells the partition in lower case.
    :param type: ``SHARED_READ``, ``SHARED_WRITE``, ``EXCLUSIVE`` or ``EXCL_WRITE``.
    :param txn_id: owning transaction, None for a lock without one.
    :param acquired_ms: when it was granted; None while it waits.
    """

    lock_id: int
    database: str
    entity: Entity | None
    state: LockState
    type: str
    txn_id: int | None
    user: str
    host: str
    acquired_ms: int | None
    last_heartbeat_ms: int | None
    agent_info: str | None

    def __str__(self) -> str:
        holder = f"txn {self.txn_id}" if self.txn_id else "no txn"
        return f"lock {self.lock_id} ({self.type}, {self.state.value}, {holder}, {self.user}@{self.host})"

    @property
    def only_keeps_a_database(self) -> bool:
        """Whether it keeps a database from being dropped, and nobody reads or writes by it.

        A CREATE TABLE ... AS SELECT has it until it ends; Hive 4 grants EXCLUSIVE ones on tables beside it.
        """
        return self.entity is None and self.type == "SHARED_READ"

    def touches(self, entity: Entity) -> bool:
        """Whether the lock is on ``entity``, or on something that it is part of or that is part of it.

        A partition is touched by locks on itself, on its table and on its database; a table also by those on its
        partitions. Names of partitions are compared by :func:`whatever_spelling`, so that a lock may touch two that
        differ in case only.
        """
        if self.entity is None:
            return self.database.lower() == entity.database
        if self.entity.full_table_name != entity.full_table_name:
            return False
        if self.entity.partition is None or entity.partition is None:
            return True
        return whatever_spelling(self.entity.partition) == whatever_spelling(entity.partition)


class LocksByPlace:
    """Locks of one moment, found by what they are on: of many entities each need not be compared with all of them.

    :param locks: in the order in which they are found.
    """

    def __init__(self, locks: Iterable[LockInfo]) -> None:
        self._at: dict[tuple[str | None, ...], list[tuple[int, LockInfo]]] = {}
        for number, lock in enumerate(locks):
            for place in _places(lock):
                self._at.setdefault(place, []).append((number, lock))

    def touching(self, entity: Entity) -> list[LockInfo]:
        """Those of which :meth:`LockInfo.touches` says so."""
        table = entity.full_table_name
        places = ((None, entity.database), (table,), (table, _spelled(entity.partition)))
        return [lock for _, lock in sorted((one for place in places for one in self._at.get(place, ())), key=_number)]


_number = itemgetter(0)


def _places(lock: LockInfo) -> list[tuple[str | None, ...]]:
    """Database, table or partition that a lock is on; the partitions of a table also under None together."""
    if lock.entity is None:
        return [(None, lock.database.lower())]
    table = lock.entity.full_table_name
    return [(table,)] if lock.entity.partition is None else [(table, _spelled(lock.entity.partition)), (table, None)]


def _spelled(partition: str | None) -> str | None:
    return None if partition is None else whatever_spelling(partition)


@dataclass(frozen=True)
class LockAnswer:
    """The server's answer to a lock request or check."""

    lock_id: int
    state: LockState
    message: str | None = None


@dataclass(frozen=True)
class CompactionRow:
    """A row of the compaction queue or its history, as ``SHOW COMPACTIONS`` reports it.

    :param type: ``major``, ``minor``, ``rebalance``, ``abort_txn_cleanup``, ``smart_optimize``, or of a newer
        server e.g. ``type 6``: a row that is left to whoever made it.
    :param highest_write_id: the compaction's high-water mark; None until recorded. Hive 4.0.1 reports it in the
        field meant for a transaction id while the row is live.
    :param next_txn_id: highest transaction id when the compaction committed, or on Hive 3.1, after it was
        published; None until then.
    :param txn_id: the compaction's own transaction; None until recorded.
    :param commit_ms: when the compaction's transaction committed, or on Hive 3.1, when it was recorded as published;
        None until then.
    :param newest_lock_id: highest id of a lock on the partition after publication; only on Hive 3.1, whose readers may
        have a lock without a transaction.
    """

    id: int
    entity: Entity
    type: str
    state: CompactionState
    worker_id: str | None = None
    pool: str | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    enqueue_ms: int | None = None
    highest_write_id: int | None = None
    next_txn_id: int | None = None
    txn_id: int | None = None
    commit_ms: int | None = None
    error_message: str | None = None
    run_as: str | None = None
    job_id: str | None = None
    initiator_id: str | None = None
    newest_lock_id: int | None = None

    @property
    def is_removal(self) -> bool:
        """Whether it is no compaction but the removal of what Hive 4 dropped or aborted: its own Cleaner's business.

        The properties of a soft delete's row name the location to remove, but SHOW COMPACTIONS does not tell them. What
        it tells is when a worker claimed a row, and no compaction is ready for cleaning, or has a transaction, without.
        """
        is_ready = self.state is CompactionState.READY_FOR_CLEANING
        return self.start_ms is None and (is_ready or (self.state.is_terminal and self.txn_id is not None))

    @property
    def notes_no_commit(self) -> bool:
        """Whether it may be committed and not say so: a rebalance, by Hive's own workers alone (Hive 4.0)."""
        return self.type == "rebalance" and self.commit_ms is None

    @property
    def waits_to_be_cleaned(self) -> bool:
        """Whether its result is part of the table, and what it replaced not yet deleted."""
        return self.state is CompactionState.READY_FOR_CLEANING and self.commit_ms is not None

    def __str__(self) -> str:
        return f"compaction {self.id} of {self.entity} ({self.type}, {self.state.value})"


@dataclass(frozen=True)
class CompactionInfo:
    """A queue row in the form in which the server hands it out and wants it back.

    :param properties: of the request, in the server's own text form; None where there are none, or they are not known.
    :param bucket_count: number of buckets that a rebalance asks for; so ``order_by``.
    """

    id: int
    entity: Entity
    type: str
    worker_id: str | None = None
    pool: str | None = None
    properties: str | None = None
    run_as: str | None = None
    highest_write_id: int | None = None
    error_message: str | None = None
    start_ms: int | None = None
    enqueue_ms: int | None = None
    bucket_count: int | None = None
    order_by: str | None = None

    @classmethod
    def of_row(cls, row: CompactionRow) -> CompactionInfo:
        """What is known of a row that was looked up instead of claimed."""
        return cls(
            id=row.id,
            entity=row.entity,
            type=row.type,
            worker_id=row.worker_id,
            pool=row.pool,
            run_as=row.run_as,
            highest_write_id=row.highest_write_id,
            error_message=row.error_message,
            start_ms=row.start_ms,
            enqueue_ms=row.enqueue_ms,
        )
