"""The calls of Hive's metastore that this package makes, with the exceptions that Hive 3.1 and 4.0 declare."""

from __future__ import annotations

from hmsclient.genthrift.hive_metastore import ttypes

from airflow_provider_acid.metastore.thrift import structs
from airflow_provider_acid.metastore.thrift.wire import I16, I64, TEXT, Method, list_of, struct_of

_META = (ttypes.MetaException,)
_NO_TXN_OR_META = (ttypes.NoSuchTxnException, ttypes.MetaException)
_COMPACTION = (struct_of(structs.CompactionInfoStruct),)

GET_METASTORE_DB_UUID = Method("get_metastore_db_uuid", (), TEXT, _META)
GET_TABLE_REQ = Method(
    "get_table_req",
    (struct_of(ttypes.GetTableRequest),),
    struct_of(structs.GetTableResult),
    (ttypes.MetaException, ttypes.NoSuchObjectException),
)
GET_DATABASE = Method(
    "get_database", (TEXT,), struct_of(structs.Database), (ttypes.NoSuchObjectException, ttypes.MetaException)
)
GET_TABLES_REQ = Method(
    "get_table_objects_by_name_req",
    (struct_of(ttypes.GetTablesRequest),),
    struct_of(structs.GetTablesResult),
    (ttypes.MetaException, ttypes.InvalidOperationException, ttypes.UnknownDBException),
)
GET_OPEN_TXNS = Method("get_open_txns", (), struct_of(structs.GetOpenTxnsResponse))
GET_OPEN_TXNS_REQ = Method(
    "get_open_txns_req", (struct_of(structs.GetOpenTxnsRequest),), struct_of(structs.GetOpenTxnsResponse)
)
OPEN_TXNS = Method("open_txns", (struct_of(structs.OpenTxnRequest),), struct_of(structs.OpenTxnsResponse))
GET_VALID_WRITE_IDS = Method(
    "get_valid_write_ids",
    (struct_of(structs.GetValidWriteIdsRequest),),
    struct_of(structs.GetValidWriteIdsResponse),
    _NO_TXN_OR_META,
)
ALLOCATE_TABLE_WRITE_IDS = Method(
    "allocate_table_write_ids",
    (struct_of(structs.AllocateTableWriteIdsRequest),),
    struct_of(structs.AllocateTableWriteIdsResponse),
    (ttypes.NoSuchTxnException, ttypes.TxnAbortedException, ttypes.MetaException),
)
LOCK = Method(
    "lock",
    (struct_of(ttypes.LockRequest),),
    struct_of(structs.LockResponse),
    (ttypes.NoSuchTxnException, ttypes.TxnAbortedException),
)
CHECK_LOCK = Method(
    "check_lock",
    (struct_of(ttypes.CheckLockRequest),),
    struct_of(structs.LockResponse),
    (ttypes.NoSuchTxnException, ttypes.TxnAbortedException, ttypes.NoSuchLockException),
)
COMPACT2 = Method("compact2", (struct_of(structs.CompactionRequest),), struct_of(structs.CompactionResponse))
SHOW_COMPACT = Method("show_compact", (struct_of(structs.ShowCompactRequest),), struct_of(structs.ShowCompactResponse))
FIND_NEXT_COMPACT2 = Method(
    "find_next_compact2",
    (struct_of(structs.FindNextCompactRequest),),
    struct_of(structs.OptionalCompactionInfoStruct),
    _META,
)
UPDATE_COMPACTOR_STATE = Method("update_compactor_state", (*_COMPACTION, I64))
SET_HADOOP_JOB_ID = Method("set_hadoop_jobid", (TEXT, I64))
MARK_COMPACTED = Method("mark_compacted", _COMPACTION, None, _META)
MARK_FAILED = Method("mark_failed", _COMPACTION, None, _META)
MARK_REFUSED = Method("mark_refused", _COMPACTION, None, _META)
MARK_CLEANED = Method("mark_cleaned", _COMPACTION, None, _META)

GET_VERSION = Method("getVersion", (), TEXT)
GET_CONFIG_VALUE = Method("get_config_value", (TEXT, TEXT), TEXT, (ttypes.ConfigValSecurityException,))
GET_ALL_DATABASES = Method("get_all_databases", (), list_of(TEXT), _META)
GET_TABLES = Method("get_tables", (TEXT, TEXT), list_of(TEXT), _META)
GET_PARTITION_NAMES = Method(
    "get_partition_names", (TEXT, TEXT, I16), list_of(TEXT), (ttypes.NoSuchObjectException, ttypes.MetaException)
)
GET_PARTITIONS_BY_NAMES = Method(
    "get_partitions_by_names",
    (TEXT, TEXT, list_of(TEXT)),
    list_of(struct_of(structs.Partition)),
    (ttypes.MetaException, ttypes.NoSuchObjectException),
)
GET_OPEN_TXNS_INFO = Method("get_open_txns_info", (), struct_of(structs.GetOpenTxnsInfoResponse))
COMMIT_TXN = Method(
    "commit_txn", (struct_of(ttypes.CommitTxnRequest),), None, (ttypes.NoSuchTxnException, ttypes.TxnAbortedException)
)
ABORT_TXN = Method("abort_txn", (struct_of(ttypes.AbortTxnRequest),), None, (ttypes.NoSuchTxnException,))
HEARTBEAT = Method(
    "heartbeat",
    (struct_of(ttypes.HeartbeatRequest),),
    None,
    (ttypes.NoSuchLockException, ttypes.NoSuchTxnException, ttypes.TxnAbortedException),
)
SHOW_LOCKS = Method("show_locks", (struct_of(ttypes.ShowLocksRequest),), struct_of(structs.ShowLocksResponse))
