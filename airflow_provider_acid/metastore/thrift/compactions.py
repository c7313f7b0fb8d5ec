"""Calls about compaction requests; what they mean together is the business of a CompactionQueue."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.metastore.thrift import structs
from airflow_provider_acid.metastore.thrift.connection import MetastoreConnection
from airflow_provider_acid.metastore.thrift.late import methods
from airflow_provider_acid.metastore.thrift.stringable_map import parse_stringable_map
from airflow_provider_acid.metastore.thrift.wire import Method, Struct
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType

HADOOP_JOB_ID_LENGTH = 32
"""Width of the column that keeps the job id."""

_TYPE_NUMBERS = {
    CompactionType.MINOR.value: 1,
    CompactionType.MAJOR.value: 2,
    "rebalance": 3,
    "abort_txn_cleanup": 4,
    "smart_optimize": 5,
}
_TYPE_NAMES = {number: name for name, number in _TYPE_NUMBERS.items()}
_UNKNOWN_TYPE = "type "

_STATE_CODES = {
    CompactionState.INITIATED: "i",
    CompactionState.WORKING: "w",
    CompactionState.READY_FOR_CLEANING: "r",
    CompactionState.SUCCEEDED: "s",
    CompactionState.FAILED: "f",
    CompactionState.DID_NOT_INITIATE: "a",
    CompactionState.REFUSED: "c",
    CompactionState.ABORTED: "x",
}


def state_of_letter(letter: str) -> CompactionState:
    """The state that Hive 4 stores as this letter."""
    return next((state for state, code in _STATE_CODES.items() if code == letter), CompactionState.UNKNOWN)


@dataclass(frozen=True)
class CompactAnswer:
    """The answer to a request; ``id`` is that of the row in the way, or -1, where it was not accepted."""

    id: int
    state: str
    accepted: bool
    message: str | None


class CompactionCalls(MetastoreConnection):
    """Compaction requests. None of the calls that change a row is repeated when its answer gets lost."""

    def compactions(
        self,
        *,
        id: int | None = None,
        entity: Entity | None = None,
        state: CompactionState | None = None,
        pool: str | None = None,
    ) -> list[CompactionRow]:
        """Rows of the queue and its history, by id; the filters also hold on servers that ignore them.

        :param entity: exactly this table or partition; the table's own rows have no partition.
        """
        request = structs.ShowCompactRequest(
            id=id,
            pool=pool,
            database=entity.database if entity else None,
            table=entity.table if entity else None,
            partition=entity.partition if entity else None,
            state=_STATE_CODES[state] if state else None,
        )
        answer = self._invoke("compactions", methods.SHOW_COMPACT, request, repeatable=True)
        rows = sorted((row_of(element) for element in answer.compactions), key=lambda row: row.id)
        return [
            row
            for row in rows
            if (id is None or row.id == id)
            and (entity is None or row.entity == entity)
            and (state is None or row.state == state)
            and (pool is None or row.pool == pool)
        ]

    def compact(
        self,
        entity: Entity,
        type: CompactionType,
        *,
        pool: str | None = None,
        properties: Mapping[str, str] | None = None,
        initiator_id: str | None = None,
    ) -> CompactAnswer:
        """Request a compaction. The server checks neither that the table exists nor that it is ACID."""
        request = structs.CompactionRequest(
            database=entity.database,
            table=entity.table,
            partition=entity.partition,
            type=_TYPE_NUMBERS[type.value],
            run_as=None,
            properties=dict(properties) if properties else None,
            initiator_id=initiator_id or f"{socket.gethostname()}-{self.user}",
            pool=pool,
        )
        return self._ask_for(entity, request)

    def compact_again(self, info: CompactionInfo, initiator_id: str | None) -> CompactAnswer:
        """Make a request anew that was claimed and ended.

        :param initiator_id: who made it.
        """
        claimed = info_struct(info)
        request = structs.CompactionRequest(
            database=claimed.database,
            table=claimed.table,
            partition=claimed.partition,
            type=claimed.type,
            run_as=claimed.run_as,
            properties=parse_stringable_map(claimed.properties) or None,
            initiator_id=initiator_id,
            pool=claimed.pool,
            bucket_count=claimed.bucket_count,
            order_by=claimed.order_by,
        )
        return self._ask_for(info.entity, request)

    def _ask_for(self, entity: Entity, request: structs.CompactionRequest) -> CompactAnswer:
        answer = self._invoke(str(entity), methods.COMPACT2, request, repeatable=False)
        return CompactAnswer(answer.id, answer.state, answer.accepted, answer.error_message)

    def find_next_compaction(self, worker_id: str, pool: str | None, worker_version: str) -> CompactionInfo | None:
        """Claim the oldest initiated request of ``pool``, or of none where it is None.

        :raises MetastoreVersionError: the server is older than Hive 4.
        """
        request = structs.FindNextCompactRequest(worker_id=worker_id, worker_version=worker_version, pool=pool)
        answer = self._invoke(
            f"compaction queue, pool {pool or 'default'}", methods.FIND_NEXT_COMPACT2, request, repeatable=False
        )
        return None if answer.info is None else _info(answer.info)

    def update_compactor_state(self, info: CompactionInfo, txn_id: int) -> None:
        """Record high-water mark, user and transaction of a claimed row."""
        self._send(methods.UPDATE_COMPACTOR_STATE, info, txn_id)

    def set_hadoop_job_id(self, compaction_id: int, job_id: str) -> None:
        """Record the job's id, cut to what the column holds; may be repeated."""
        self._invoke(
            f"compaction {compaction_id}",
            methods.SET_HADOOP_JOB_ID,
            job_id[:HADOOP_JOB_ID_LENGTH],
            compaction_id,
            repeatable=True,
        )

    def mark_compacted(self, info: CompactionInfo) -> None:
        """Make a row ready for cleaning; the server checks neither its state nor its worker."""
        self._send(methods.MARK_COMPACTED, info)

    def mark_failed(self, info: CompactionInfo, message: str) -> None:
        """Move a row to history as failed; the server checks neither its state nor its worker."""
        self._send(methods.MARK_FAILED, replace(info, error_message=message))

    def mark_refused(self, info: CompactionInfo, message: str) -> None:
        """Move a row to history as refused; the server checks neither its state nor its worker."""
        self._send(methods.MARK_REFUSED, replace(info, error_message=message))

    def mark_cleaned(self, info: CompactionInfo) -> None:
        """Move a row to history as succeeded and drop the bookkeeping of write ids up to its highest.

        :raises ConfigurationError: the highest write id is unset or not positive: the server would then drop the
            bookkeeping of all write ids, and aborted rows would come back.
        """
        if info.highest_write_id is None or info.highest_write_id <= 0:
            raise ConfigurationError(
                f"compaction {info.id} of {info.entity}",
                f"cannot be marked cleaned with highest write id {info.highest_write_id}",
                "leave the row ready for cleaning",
            )
        self._send(methods.MARK_CLEANED, info)

    def _send(self, method: Method, info: CompactionInfo, *arguments: object) -> None:
        subject = f"compaction {info.id} of {info.entity}"
        self._invoke(subject, method, info_struct(info), *arguments, repeatable=False)


def _positive(value: int | None) -> int | None:
    """The value, or None where the database held NULL, which some servers send as 0."""
    return value if value else None


def _pool(name: str | None) -> str | None:
    """The pool, or None for a request without one, which Hive shows as ``default``."""
    return None if name == "default" else name or None


def _type_name(number: int | None) -> str:
    """A request's type; a newer server's own keeps its number, so that its row can be sent back as it came."""
    return _TYPE_NAMES.get(number or 0, f"{_UNKNOWN_TYPE}{number}")


def _type_number(name: str) -> int | None:
    """The number behind :func:`_type_name`; None where the server sent none."""
    number = name.removeprefix(_UNKNOWN_TYPE)
    return _TYPE_NUMBERS.get(name) or (int(number) if number.isdecimal() else None)


def row_of(element: Struct) -> CompactionRow:
    """The row that SHOW COMPACTIONS describes."""
    return CompactionRow(
        id=element.id or 0,
        entity=Entity(element.database, element.table, element.partition or None),
        type=_type_name(element.type),
        state=CompactionState.from_show_text(element.state),
        worker_id=element.worker_id or None,
        pool=_pool(element.pool),
        start_ms=_positive(element.start_ms),
        end_ms=_positive(element.end_ms),
        enqueue_ms=_positive(element.enqueue_ms),
        highest_write_id=_positive(element.highest_write_id) or _positive(element.highest_txn_id),
        next_txn_id=_positive(element.next_txn_id),
        txn_id=_positive(element.txn_id),
        commit_ms=_positive(element.commit_ms),
        error_message=element.error_message or None,
        run_as=element.run_as or None,
        job_id=element.job_id or None,
        initiator_id=element.initiator_id or None,
    )


def _info(info: Struct) -> CompactionInfo:
    return CompactionInfo(
        id=info.id,
        entity=Entity(info.database, info.table, info.partition or None),
        type=_type_name(info.type),
        worker_id=info.worker_id or None,
        pool=info.pool or None,
        properties=info.properties,
        run_as=info.run_as,
        highest_write_id=_positive(info.highest_write_id),
        start_ms=_positive(info.start_ms),
        enqueue_ms=_positive(info.enqueue_ms),
        bucket_count=_positive(info.bucket_count),
        order_by=info.order_by or None,
    )


def info_struct(info: CompactionInfo) -> structs.CompactionInfoStruct:
    """A row in the form in which the server wants it back."""
    return structs.CompactionInfoStruct(
        id=info.id,
        database=info.entity.database,
        table=info.entity.table,
        partition=info.entity.partition,
        type=_type_number(info.type),
        run_as=info.run_as,
        properties=info.properties,
        worker_id=info.worker_id,
        start_ms=info.start_ms,
        highest_write_id=info.highest_write_id,
        error_message=info.error_message,
        enqueue_ms=info.enqueue_ms,
        pool=info.pool,
        bucket_count=info.bucket_count,
        order_by=info.order_by,
    )
