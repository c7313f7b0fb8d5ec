"""The Thrift structs of Hive's metastore, with the fields that this package sends or reads.

Field numbers and types come from the generated classes of Hive 4.0.1; optional fields that are left unset are not
sent, so that the same structs serve Hive 3.1.3. Attribute names are free, the wire carries only numbers. Required is
what Hive's interface definition says is, and what cannot be used without it.
"""

from __future__ import annotations

from airflow_provider_acid.metastore.thrift.wire import (
    BINARY,
    BOOL,
    I32,
    I64,
    TEXT,
    TEXT_MAP,
    Struct,
    list_of,
    spec,
    struct_of,
)


class GetOpenTxnsResponse(Struct):
    """``open_txns`` holds open and aborted ids; bit i of ``aborted_bits`` tells which are aborted."""

    thrift_spec = spec(
        (1, "txn_high_water_mark", I64),
        (2, "open_txns", list_of(I64)),
        (3, "min_open_txn", I64),
        (4, "aborted_bits", BINARY),
    )
    required = ("txn_high_water_mark", "open_txns", "aborted_bits")


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
    required = ("full_table_name", "write_id_high_water_mark", "invalid_write_ids", "aborted_bits")


class GetValidWriteIdsResponse(Struct):
    """One entry per table asked for."""

    thrift_spec = spec((1, "tables", list_of(struct_of(TableValidWriteIds))))
    required = ("tables",)


class TxnToWriteId(Struct):
    """The write id a transaction got in one table."""

    thrift_spec = spec((1, "txn_id", I64), (2, "write_id", I64))
    required = ("txn_id", "write_id")


class AllocateTableWriteIdsRequest(Struct):
    """One write id per transaction for one table."""

    thrift_spec = spec((1, "database", TEXT), (2, "table", TEXT), (3, "txn_ids", list_of(I64)))


class AllocateTableWriteIdsResponse(Struct):
    """The write ids handed out."""

    thrift_spec = spec((1, "txn_to_write_ids", list_of(struct_of(TxnToWriteId))))
    required = ("txn_to_write_ids",)


class TxnInfo(Struct):
    """A transaction that is open or aborted; names as in hmsclient."""

    thrift_spec = spec(
        (1, "id", I64),
        (2, "state", I32),
        (3, "user", TEXT),
        (4, "hostname", TEXT),
        (5, "agentInfo", TEXT),
        (8, "startedTime", I64),
        (9, "lastHeartbeatTime", I64),
    )
    required = ("id", "state", "user", "hostname")


class GetOpenTxnsInfoResponse(Struct):
    """Transactions that are open or aborted."""

    thrift_spec = spec((1, "txn_high_water_mark", I64), (2, "open_txns", list_of(struct_of(TxnInfo))))
    required = ("txn_high_water_mark", "open_txns")


class OpenTxnsResponse(Struct):
    """The transactions that were opened."""

    thrift_spec = spec((1, "txn_ids", list_of(I64)))
    required = ("txn_ids",)


class ShownLock(Struct):
    """A ShowLocksResponseElement; names as in hmsclient."""

    thrift_spec = spec(
        (1, "lockid", I64),
        (2, "dbname", TEXT),
        (3, "tablename", TEXT),
        (4, "partname", TEXT),
        (5, "state", I32),
        (6, "type", I32),
        (7, "txnid", I64),
        (8, "lastheartbeat", I64),
        (9, "acquiredat", I64),
        (10, "user", TEXT),
        (11, "hostname", TEXT),
        (13, "agentInfo", TEXT),
    )
    required = ("lockid", "dbname", "state", "type", "user", "hostname")


class ShowLocksResponse(Struct):
    """Locks; Hive leaves the list out where there are none."""

    thrift_spec = spec((1, "locks", list_of(struct_of(ShownLock))))


class LockResponse(Struct):
    """Field 3 is new in Hive 4."""

    thrift_spec = spec((1, "lock_id", I64), (2, "state", I32), (3, "error_message", TEXT))
    required = ("lock_id", "state")


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
    required = ("id", "state", "accepted")


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
    required = ("database", "table", "type")


class ShowCompactResponse(Struct):
    """The rows of queue and history."""

    thrift_spec = spec((1, "compactions", list_of(struct_of(ShowCompactResponseElement))))
    required = ("compactions",)


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
    required = ("id", "database", "table", "type")


class OptionalCompactionInfoStruct(Struct):
    """``info`` is unset when there is no work."""

    thrift_spec = spec((1, "info", struct_of(CompactionInfoStruct)))


class FieldSchema(Struct):
    """A column or partition key."""

    thrift_spec = spec((1, "name", TEXT), (2, "type", TEXT))
    required = ("name", "type")


class Order(Struct):
    """A column that rows are sorted by."""

    thrift_spec = spec((1, "column", TEXT))
    required = ("column",)


class SerDeInfo(Struct):
    """How rows are taken from and made into files."""

    thrift_spec = spec((2, "library", TEXT), (3, "parameters", TEXT_MAP))


class Storage(Struct):
    """The StorageDescriptor of a partition, without its columns, which are many and which nobody here reads."""

    thrift_spec = spec(
        (2, "location", TEXT),
        (3, "input_format", TEXT),
        (7, "serde", struct_of(SerDeInfo)),
        (9, "sort_columns", list_of(struct_of(Order))),
        (12, "stored_as_directories", BOOL),
    )


class TableStorage(Struct):
    """The StorageDescriptor of a table."""

    thrift_spec = spec(
        (1, "columns", list_of(struct_of(FieldSchema))),
        (2, "location", TEXT),
        (3, "input_format", TEXT),
        (6, "bucket_count", I32),
        (7, "serde", struct_of(SerDeInfo)),
        (9, "sort_columns", list_of(struct_of(Order))),
        (12, "stored_as_directories", BOOL),
    )


class Partition(Struct):
    """A partition, without the fields nobody here reads."""

    thrift_spec = spec((1, "values", list_of(TEXT)), (6, "storage", struct_of(Storage)), (7, "parameters", TEXT_MAP))
    required = ("values", "storage")


class Table(Struct):
    """A table, without the fields nobody here reads; field 19 is new in Hive 4."""

    thrift_spec = spec(
        (1, "name", TEXT),
        (2, "database", TEXT),
        (3, "owner", TEXT),
        (7, "storage", struct_of(TableStorage)),
        (8, "partition_keys", list_of(struct_of(FieldSchema))),
        (9, "parameters", TEXT_MAP),
        (12, "table_type", TEXT),
        (19, "write_id", I64),
    )
    required = ("name", "database", "storage")


class Database(Struct):
    """Field 10 is where managed tables lie by default, new in Hive 4, and set only where somebody chose it."""

    thrift_spec = spec(
        (1, "name", TEXT), (3, "location", TEXT), (4, "parameters", TEXT_MAP), (10, "managed_location", TEXT)
    )
    required = ("name",)


class GetTableResult(Struct):
    """The table asked for."""

    thrift_spec = spec((1, "table", struct_of(Table)))
    required = ("table",)


class GetTablesResult(Struct):
    """Those of the tables asked for that there are."""

    thrift_spec = spec((1, "tables", list_of(struct_of(Table))))
    required = ("tables",)
