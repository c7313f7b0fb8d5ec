"""The Thrift structs and calls of Hive's metastore that hmsclient (generated from Hive 2) lacks or has too old.

Field numbers and types come from the generated classes of Hive 4.0.1; optional fields that are left unset are not
sent, so that the same structs serve Hive 3.1.3. Attribute names are free, the wire carries only numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from hmsclient.genthrift.hive_metastore import ttypes
from thrift.protocol.TBase import TBase
from thrift.Thrift import TType

FieldType = tuple[int, object]
"""Thrift's type number and what its protocols need to know beyond it."""

FieldSpec = tuple[int, int, str, object, None]

BOOL: FieldType = (TType.BOOL, None)
I32: FieldType = (TType.I32, None)
I64: FieldType = (TType.I64, None)
TEXT: FieldType = (TType.STRING, "UTF8")
BINARY: FieldType = (TType.STRING, "BINARY")
TEXT_MAP: FieldType = (TType.MAP, (TType.STRING, "UTF8", TType.STRING, "UTF8", False))


def list_of(item: FieldType) -> FieldType:
    """A list of ``item``."""
    return TType.LIST, (*item, False)


def struct_of(struct: type[TBase]) -> FieldType:
    """A nested struct."""
    return TType.STRUCT, [struct, struct.thrift_spec]


def map_of_i64_to(item: FieldType) -> FieldType:
    """A map with 64-bit keys."""
    return TType.MAP, (TType.I64, None, *item, False)


def spec(*fields: tuple[int, str, FieldType]) -> tuple[FieldSpec | None, ...]:
    """A ``thrift_spec``, indexed by field number, from ``(number, name, type)``."""
    by_number = {number: (number, type[0], name, type[1], None) for number, name, type in fields}
    return tuple(by_number.get(number) for number in range(max(by_number, default=-1) + 1))


class Struct(TBase):  # type: ignore[misc]
    """A Thrift struct whose fields are named by its ``thrift_spec``; those not given are None."""

    thrift_spec: ClassVar[tuple[FieldSpec | None, ...]] = ()

    def __init__(self, **values: object) -> None:
        for field in filter(None, self.thrift_spec):
            setattr(self, field[2], values.pop(field[2], None))
        if values:
            raise TypeError(f"{type(self).__name__} has no fields {sorted(values)}")


class GetOpenTxnsResponse(Struct):
    """``open_txns`` holds open and aborted ids; bit i of ``aborted_bits`` tells which are aborted."""

    thrift_spec = spec(
        (1, "txn_high_water_mark", I64),
        (2, "open_txns", list_of(I64)),
        (3, "min_open_txn", I64),
        (4, "aborted_bits", BINARY),
    )


class GetOpenTxnsRequest(Struct):
    """New in Hive 4; transactions of the types named are left out of the answer."""

    thrift_spec = spec((1, "exclude_txn_types", list_of(I32)))


class OpenTxnRequest(Struct):
    """Field 7 is a TxnType, new in Hive 4."""

    thrift_spec = spec(
        (1, "num_txns", I32), (2, "user", TEXT), (3, "hostname", TEXT), (4, "agent_info", TEXT), (7, "txn_type", I32)
    )


class GetValidWriteIdsRequest(Struct):
    """``full_table_names`` in lower case; ``valid_txn_list`` is never left out: empty means all valid."""

    thrift_spec = spec((1, "full_table_names", list_of(TEXT)), (2, "valid_txn_list", TEXT), (3, "write_id", I64))


class TableValidWriteIds(Struct):
    """``invalid_write_ids`` holds open and aborted ids; bit i of ``aborted_bits`` tells which are aborted."""

    thrift_spec = spec(
        (1, "full_table_name", TEXT),
        (2, "write_id_high_water_mark", I64),
        (3, "invalid_write_ids", list_of(I64)),
        (4, "min_open_write_id", I64),
        (5, "aborted_bits", BINARY),
    )


class GetValidWriteIdsResponse(Struct):
    """One entry per table asked for."""

    thrift_spec = spec((1, "tables", list_of(struct_of(TableValidWriteIds))))


class TxnToWriteId(Struct):
    """The write id a transaction got in one table."""

    thrift_spec = spec((1, "txn_id", I64), (2, "write_id", I64))


class AllocateTableWriteIdsRequest(Struct):
    """One write id per transaction for one table."""

    thrift_spec = spec((1, "database", TEXT), (2, "table", TEXT), (3, "txn_ids", list_of(I64)))


class AllocateTableWriteIdsResponse(Struct):
    """The write ids handed out."""

    thrift_spec = spec((1, "txn_to_write_ids", list_of(struct_of(TxnToWriteId))))


class LockResponse(Struct):
    """Field 3 is new in Hive 4."""

    thrift_spec = spec((1, "lock_id", I64), (2, "state", I32), (3, "error_message", TEXT))


class CompactionRequest(Struct):
    """Fields 7 to 11 are new in Hive 4."""

    thrift_spec = spec(
        (1, "database", TEXT),
        (2, "table", TEXT),
        (3, "partition", TEXT),
        (4, "type", I32),
        (5, "run_as", TEXT),
        (6, "properties", TEXT_MAP),
        (7, "initiator_id", TEXT),
        (8, "initiator_version", TEXT),
        (9, "pool", TEXT),
        (10, "bucket_count", I32),
        (11, "order_by", TEXT),
    )


class CompactionResponse(Struct):
    """Field 4 is new in Hive 4."""

    thrift_spec = spec((1, "id", I64), (2, "state", TEXT), (3, "accepted", BOOL), (4, "error_message", TEXT))


class ShowCompactRequest(Struct):
    """Empty in Hive 3.1, which skips the filters. ``state`` is Hive's one-letter code."""

    thrift_spec = spec(
        (1, "id", I64),
        (2, "pool", TEXT),
        (3, "database", TEXT),
        (4, "table", TEXT),
        (5, "partition", TEXT),
        (6, "type", I32),
        (7, "state", TEXT),
        (8, "limit", I64),
        (9, "order", TEXT),
    )


class ShowCompactResponseElement(Struct):
    """Fields 14 to 24 are new in Hive 4."""

    thrift_spec = spec(
        (1, "database", TEXT),
        (2, "table", TEXT),
        (3, "partition", TEXT),
        (4, "type", I32),
        (5, "state", TEXT),
        (6, "worker_id", TEXT),
        (7, "start_ms", I64),
        (8, "run_as", TEXT),
        (9, "highest_txn_id", I64),
        (10, "meta_info", TEXT),
        (11, "end_ms", I64),
        (12, "job_id", TEXT),
        (13, "id", I64),
        (14, "error_message", TEXT),
        (15, "enqueue_ms", I64),
        (16, "worker_version", TEXT),
        (17, "initiator_id", TEXT),
        (18, "initiator_version", TEXT),
        (19, "cleaner_start_ms", I64),
        (20, "pool", TEXT),
        (21, "next_txn_id", I64),
        (22, "txn_id", I64),
        (23, "commit_ms", I64),
        (24, "highest_write_id", I64),
    )


class ShowCompactResponse(Struct):
    """The rows of queue and history."""

    thrift_spec = spec((1, "compactions", list_of(struct_of(ShowCompactResponseElement))))


class FindNextCompactRequest(Struct):
    """Without a pool only requests without one are handed out (others after the pool time-out)."""

    thrift_spec = spec((1, "worker_id", TEXT), (2, "worker_version", TEXT), (3, "pool", TEXT))


class CompactionInfoStruct(Struct):
    """A queue row as workers and cleaners send it back."""

    thrift_spec = spec(
        (1, "id", I64),
        (2, "database", TEXT),
        (3, "table", TEXT),
        (4, "partition", TEXT),
        (5, "type", I32),
        (6, "run_as", TEXT),
        (7, "properties", TEXT),
        (8, "too_many_aborts", BOOL),
        (9, "state", TEXT),
        (10, "worker_id", TEXT),
        (11, "start_ms", I64),
        (12, "highest_write_id", I64),
        (13, "error_message", TEXT),
        (14, "has_old_abort", BOOL),
        (15, "enqueue_ms", I64),
        (16, "retry_retention", I64),
        (17, "pool", TEXT),
        (18, "bucket_count", I32),
        (19, "order_by", TEXT),
    )


class OptionalCompactionInfoStruct(Struct):
    """``info`` is unset when there is no work."""

    thrift_spec = spec((1, "info", struct_of(CompactionInfoStruct)))


class AbortCompactionRequest(Struct):
    """Only rows still initiated are aborted."""

    thrift_spec = spec((1, "compaction_ids", list_of(I64)), (2, "type", TEXT), (3, "pool", TEXT))


class AbortCompactionResponseElement(Struct):
    """What happened to one row."""

    thrift_spec = spec((1, "compaction_id", I64), (2, "status", TEXT), (3, "message", TEXT))


class AbortCompactResponse(Struct):
    """The outcome per row id."""

    thrift_spec = spec((1, "aborted", map_of_i64_to(struct_of(AbortCompactionResponseElement))))


class Table(Struct):
    """A table, without the fields nobody here reads; field 19 is new in Hive 4."""

    thrift_spec = spec(
        (1, "name", TEXT),
        (2, "database", TEXT),
        (3, "owner", TEXT),
        (7, "storage", struct_of(ttypes.StorageDescriptor)),
        (8, "partition_keys", list_of(struct_of(ttypes.FieldSchema))),
        (9, "parameters", TEXT_MAP),
        (12, "table_type", TEXT),
        (19, "write_id", I64),
    )


class Database(Struct):
    """Field 10 is where managed tables lie by default, new in Hive 4, and set only where somebody chose it."""

    thrift_spec = spec(
        (1, "name", TEXT), (3, "location", TEXT), (4, "parameters", TEXT_MAP), (10, "managed_location", TEXT)
    )


class GetTableResult(Struct):
    """The table asked for."""

    thrift_spec = spec((1, "table", struct_of(Table)))


class GetTablesResult(Struct):
    """Those of the tables asked for that there are."""

    thrift_spec = spec((1, "tables", list_of(struct_of(Table))))


@dataclass(frozen=True)
class Method:
    """A call of the metastore's Thrift service.

    :param arguments: types of the arguments, numbered from 1.
    :param result: type of the answer; None for a void call.
    :param errors: declared exceptions, numbered from 1.
    """

    name: str
    arguments: tuple[FieldType, ...] = ()
    result: FieldType | None = None
    errors: tuple[type[TBase], ...] = ()

    @cached_property
    def arguments_struct(self) -> type[Struct]:
        """The message that carries the arguments, fields ``argument_1`` and on."""
        return _message(*((number, f"argument_{number}", type) for number, type in enumerate(self.arguments, 1)))

    @cached_property
    def answer_struct(self) -> type[Struct]:
        """The message that carries ``result`` or one of ``error_1`` and on."""
        errors = [(number, f"error_{number}", struct_of(error)) for number, error in enumerate(self.errors, 1)]
        return _message(*([(0, "result", self.result)] if self.result else []), *errors)


def _message(*fields: tuple[int, str, FieldType]) -> type[Struct]:
    return type("Message", (Struct,), {"thrift_spec": spec(*fields)})


_META = (ttypes.MetaException,)
_NO_TXN_OR_META = (ttypes.NoSuchTxnException, ttypes.MetaException)
_COMPACTION = (struct_of(CompactionInfoStruct),)

GET_TABLE_REQ = Method(
    "get_table_req",
    (struct_of(ttypes.GetTableRequest),),
    struct_of(GetTableResult),
    (ttypes.MetaException, ttypes.NoSuchObjectException),
)
GET_DATABASE = Method(
    "get_database", (TEXT,), struct_of(Database), (ttypes.NoSuchObjectException, ttypes.MetaException)
)
GET_TABLES_REQ = Method(
    "get_table_objects_by_name_req",
    (struct_of(ttypes.GetTablesRequest),),
    struct_of(GetTablesResult),
    (ttypes.MetaException, ttypes.InvalidOperationException, ttypes.UnknownDBException),
)
GET_OPEN_TXNS = Method("get_open_txns", (), struct_of(GetOpenTxnsResponse))
GET_OPEN_TXNS_REQ = Method("get_open_txns_req", (struct_of(GetOpenTxnsRequest),), struct_of(GetOpenTxnsResponse))
OPEN_TXNS = Method("open_txns", (struct_of(OpenTxnRequest),), struct_of(ttypes.OpenTxnsResponse))
GET_VALID_WRITE_IDS = Method(
    "get_valid_write_ids", (struct_of(GetValidWriteIdsRequest),), struct_of(GetValidWriteIdsResponse), _NO_TXN_OR_META
)
ALLOCATE_TABLE_WRITE_IDS = Method(
    "allocate_table_write_ids",
    (struct_of(AllocateTableWriteIdsRequest),),
    struct_of(AllocateTableWriteIdsResponse),
    (ttypes.NoSuchTxnException, ttypes.TxnAbortedException, ttypes.MetaException),
)
LOCK = Method(
    "lock",
    (struct_of(ttypes.LockRequest),),
    struct_of(LockResponse),
    (ttypes.NoSuchTxnException, ttypes.TxnAbortedException),
)
CHECK_LOCK = Method(
    "check_lock",
    (struct_of(ttypes.CheckLockRequest),),
    struct_of(LockResponse),
    (ttypes.NoSuchTxnException, ttypes.TxnAbortedException, ttypes.NoSuchLockException),
)
COMPACT2 = Method("compact2", (struct_of(CompactionRequest),), struct_of(CompactionResponse))
SHOW_COMPACT = Method("show_compact", (struct_of(ShowCompactRequest),), struct_of(ShowCompactResponse))
FIND_NEXT_COMPACT2 = Method(
    "find_next_compact2", (struct_of(FindNextCompactRequest),), struct_of(OptionalCompactionInfoStruct), _META
)
UPDATE_COMPACTOR_STATE = Method("update_compactor_state", (*_COMPACTION, I64))
SET_HADOOP_JOB_ID = Method("set_hadoop_jobid", (TEXT, I64))
MARK_COMPACTED = Method("mark_compacted", _COMPACTION, None, _META)
MARK_FAILED = Method("mark_failed", _COMPACTION, None, _META)
MARK_REFUSED = Method("mark_refused", _COMPACTION, None, _META)
MARK_CLEANED = Method("mark_cleaned", _COMPACTION, None, _META)
ABORT_COMPACTIONS = Method("abort_Compactions", (struct_of(AbortCompactionRequest),), struct_of(AbortCompactResponse))
