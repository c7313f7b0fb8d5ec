"""What tests and the quickstart do to a metastore besides compacting: tables, partitions, transactions, locks.

Independent of the package's own client. One object per thread.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType

from hmsclient.genthrift.hive_metastore import ttypes
from hmsclient.genthrift.hive_metastore.ThriftHiveMetastore import Client
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException
from typing_extensions import Self

from tests.harness import thrift_structs as structs
from tests.harness.thrift_answers import NO_OPEN_WRITE_ID, ShownCompaction, Transactions, WriteIds
from tests.harness.thrift_calls import ThriftCalls

TIMEOUT_SECONDS = 60
HANG_UPS = 3  # in a row; two were seen
ORC_SERDE = "org.apache.hadoop.hive.ql.io.orc.OrcSerde"
ORC_INPUT_FORMAT = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
ORC_OUTPUT_FORMAT = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"
FULL_ACID = {"transactional": "true", "transactional_properties": "default", "bucketing_version": "2"}

# Without these the metastore's transformer refuses ACID tables: "Processor has no capabilities".
_CAPABILITIES = [
    *("EXTWRITE", "EXTREAD", "HIVEBUCKET2", "HIVECACHEINVALIDATE", "HIVEMANAGESTATS"),
    *("HIVEFULLACIDREAD", "HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTREAD", "HIVEMANAGEDINSERTWRITE"),
]
_INSERT_ONLY_TABLES = 2  # ClientCapability of Hive 3 and 4; hmsclient knows number 1 only


@dataclass(frozen=True)
class TableDefinition:
    """A managed table to create; an ORC full-ACID one unless said otherwise.

    :param columns: name to Hive type, in order, without partition keys.
    :param partition_keys: name to Hive type, in order.
    :param bucket_columns: the columns of CLUSTERED BY; used with ``buckets``.
    :param buckets: number of buckets, or -1 for none.
    :param properties: TBLPROPERTIES.
    :param location: folder of the table; None for the warehouse's own choice.
    """

    database: str
    name: str
    columns: Mapping[str, str]
    partition_keys: Mapping[str, str] = field(default_factory=dict)
    bucket_columns: tuple[str, ...] = ()
    buckets: int = -1
    properties: Mapping[str, str] = field(default_factory=lambda: FULL_ACID)
    location: Path | None = None
    serde: str = ORC_SERDE
    input_format: str = ORC_INPUT_FORMAT
    output_format: str = ORC_OUTPUT_FORMAT


class ThriftAdmin:
    """A connection to a metastore, as a context manager. Thrift's own errors are passed on.

    :param host: host name or address.
    :param port: Thrift port.
    """

    def __init__(self, host: str, port: int) -> None:
        socket = TSocket(host, port)
        socket.setTimeout(TIMEOUT_SECONDS * 1000)
        self._transport = TBufferedTransport(socket)
        protocol = TBinaryProtocolAccelerated(self._transport)
        self._client = Client(protocol)
        self._calls = ThriftCalls(protocol)

    def __enter__(self) -> Self:
        self._transport.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._transport.close()

    @cached_property
    def is_hive_3(self) -> bool:
        """Whether this is a metastore of Hive 3."""
        return str(self._client.getVersion()).startswith("3.")

    # --- databases, tables, partitions

    def create_database(
        self, name: str, *, properties: Mapping[str, str] | None = None, uri: str | None = None
    ) -> None:
        """Creates a database in the warehouse, or at a URI; one that exists stays as it is."""
        if name not in self._client.get_all_databases():
            parameters = dict(properties or {})
            self._client.create_database(ttypes.Database(name=name, parameters=parameters, locationUri=uri))

    def drop_database(self, name: str) -> None:
        """Drops a database, but no source of replication, and all that is remembered of its tables; files stay."""
        with suppress(ttypes.InvalidOperationException):
            self._client.drop_database(name, False, True)

    def create_table(self, table: TableDefinition) -> Path:
        """Creates a managed table and returns the folder it lies in."""
        descriptor = ttypes.StorageDescriptor(
            cols=_columns(table.columns),
            location=f"file:{table.location}" if table.location else None,
            inputFormat=table.input_format,
            outputFormat=table.output_format,
            compressed=False,
            numBuckets=table.buckets,
            serdeInfo=ttypes.SerDeInfo(serializationLib=table.serde, parameters={"serialization.format": "1"}),
            bucketCols=list(table.bucket_columns),
            sortCols=[],
            parameters={},
        )
        described = ttypes.Table(
            tableName=table.name,
            dbName=table.database,
            owner=getpass.getuser(),
            sd=descriptor,
            partitionKeys=_columns(table.partition_keys),
            parameters=dict(table.properties),
            tableType="MANAGED_TABLE",
        )
        request = structs.CreateTableRequest(
            table=described, processorCapabilities=_CAPABILITIES, processorIdentifier="airflow-provider-acid-tests"
        )
        if self.is_hive_3:
            self._client.create_table(described)
        else:
            self._calls.call("create_table_req", request, "request", None)
        return self.table_location(table.database, table.name)

    def table_uri(self, database: str, name: str) -> str:
        """Where a table lies, as the metastore keeps it."""
        return str(self._table(database, name).sd.location)

    def uris(self, database: str, name: str) -> list[str]:
        """Where a table and each of its partitions lie, as the metastore keeps it."""
        table = self._table(database, name)
        partitions = self._client.get_partitions(database, name, -1) if table.partitionKeys else []
        return [str(item.sd.location) for item in (table, *partitions)]

    def table_location(self, database: str, name: str) -> Path:
        """The folder a table on the local disk lies in."""
        return _local_path(self._table(database, name).sd.location)

    def set_table_properties(self, database: str, name: str, properties: Mapping[str, str]) -> None:
        """ALTER TABLE … SET TBLPROPERTIES."""
        table = self._table(database, name)
        table.parameters.update(properties)
        self._client.alter_table(database, name, table)

    def set_table_location(self, database: str, name: str, uri: str) -> None:
        """Changes where a table lies, as ALTER TABLE … SET LOCATION does; no file is moved."""
        table = self._table(database, name)
        table.sd.location = uri
        self._client.alter_table(database, name, table)

    def set_database_properties(self, name: str, properties: Mapping[str, str]) -> None:
        """ALTER DATABASE … SET DBPROPERTIES."""
        database = self._client.get_database(name)
        database.parameters = {**(database.parameters or {}), **properties}
        self._client.alter_database(name, database)

    def rename_table(self, database: str, name: str, new_name: str) -> None:
        """ALTER TABLE … RENAME TO."""
        table = self._table(database, name)
        table.tableName = new_name
        self._client.alter_table(database, name, table)

    def drop_table(self, database: str, name: str) -> None:
        """Drops a table with its files."""
        self._client.drop_table(database, name, True)

    def truncate_table(self, database: str, name: str, partitions: Iterable[str] = ()) -> None:
        """Deletes the files of a table, or of the named partitions of it, in a transaction of its own.

        Hive 3 knows no transaction here.
        """
        if self.is_hive_3:
            arguments = structs.TruncateTable(dbName=database, tableName=name, partNames=list(partitions) or None)
            self._calls.call_with("truncate_table", arguments, None)
            return
        (transaction,) = self.open_transactions()
        write_id = self.allocate_write_ids(database, name, [transaction])[transaction]
        request = structs.TruncateTableRequest(
            dbName=database,
            tableName=name,
            partNames=list(partitions) or None,
            writeId=write_id,
            validWriteIdList=f"{database}.{name}:{write_id}:{NO_OPEN_WRITE_ID}::",
        )
        self._calls.call("truncate_table_req", request, "req", None)
        self.commit(transaction)

    def add_partitions(
        self, database: str, name: str, partitions: Iterable[str], *, uri: str | None = None
    ) -> list[Path]:
        """Adds partitions by name (``ds=2024-01-01/h=0``, values escaped), in the folder of that name or there."""
        table = self._table(database, name)
        added = []
        for partition in partitions:
            values = self._client.partition_name_to_vals(partition)
            descriptor = _copy_descriptor(table.sd, uri or f"{table.sd.location}/{partition}")
            added.append(ttypes.Partition(values=values, dbName=database, tableName=name, sd=descriptor, parameters={}))
        if added:
            self._client.add_partitions(added)
        return [_local_path(partition.sd.location) for partition in added]

    def drop_partition(self, database: str, name: str, partition: str) -> None:
        """Drops a partition with its files."""
        self._client.drop_partition_by_name(database, name, partition, True)

    def partition_names(self, database: str, name: str) -> list[str]:
        """All partitions of a table, names as the metastore spells them."""
        return list(self._client.get_partition_names(database, name, -1))

    # --- transactions and write ids

    def open_transactions(self, count: int = 1) -> list[int]:
        """Opens transactions of the default type and returns their ids, ascending."""
        request = ttypes.OpenTxnRequest(num_txns=count, user=getpass.getuser(), hostname="localhost")
        return sorted(self._client.open_txns(request).txn_ids)

    def commit(self, transaction: int) -> None:
        """Commits a transaction."""
        self._client.commit_txn(ttypes.CommitTxnRequest(txnid=transaction))

    def abort(self, transaction: int) -> None:
        """Aborts a transaction."""
        self._client.abort_txn(ttypes.AbortTxnRequest(txnid=transaction))

    def heartbeat(self, transaction: int) -> None:
        """Keeps a transaction and its locks alive."""
        self._client.heartbeat(ttypes.HeartbeatRequest(txnid=transaction))

    def transactions(self) -> Transactions:
        """Open and aborted transactions; the reading side of Hive's ``ValidTxnList``."""
        for _ in range(HANG_UPS):
            try:
                return Transactions.of(self._client.get_open_txns_info())
            except TTransportException:
                # Hive 4.2 hangs up where a transaction is just being opened: its answer has one without a user.
                self._transport.close()
                self.__enter__()
        return Transactions.of(self._client.get_open_txns_info())

    def allocate_write_ids(self, database: str, name: str, transactions: Iterable[int]) -> dict[int, int]:
        """Gives each transaction its write id in a table: transaction id to write id."""
        request = structs.AllocateTableWriteIdsRequest(dbName=database, tableName=name, txnIds=list(transactions))
        answer = self._calls.call("allocate_table_write_ids", request, "rqst", structs.AllocateTableWriteIdsResponse)
        return {pair.txnId: pair.writeId for pair in answer.txnToWriteIds}

    def seed_write_id(self, database: str, name: str, last_used: int) -> None:
        """Makes the first write id of a table that has none yet ``last_used + 1``."""
        request = structs.SeedTableWriteIdsRequest(dbName=database, tableName=name, seedWriteId=last_used)
        self._calls.call("seed_write_id", request, "rqst", None)

    def write_ids(self, database: str, name: str, transactions: Transactions | None = None) -> WriteIds:
        """The write ids of a table as a reader sees them to whom these are the transactions; None: that starts now."""
        valid = (transactions or self.transactions()).as_valid_txn_list()
        request = structs.GetValidWriteIdsRequest(fullTableNames=[f"{database}.{name}".lower()], validTxnList=valid)
        answer = self._calls.call("get_valid_write_ids", request, "rqst", structs.GetValidWriteIdsResponse)
        (table,) = answer.tblValidWriteIds
        bits = int.from_bytes(table.abortedBits, "little")
        aborted = {write_id for place, write_id in enumerate(table.invalidWriteIds) if bits >> place & 1}
        return WriteIds(table.writeIdHighWaterMark, frozenset(table.invalidWriteIds) - aborted, frozenset(aborted))

    def add_dynamic_partitions(
        self, transaction: int, write_id: int, database: str, name: str, partitions: Iterable[str]
    ) -> None:
        """Records which partitions a transaction inserted into, as a dynamic-partition INSERT does."""
        request = structs.AddDynamicPartitions(
            txnid=transaction,
            writeid=write_id,
            dbname=database,
            tablename=name,
            partitionnames=list(partitions),
            operationType=ttypes.DataOperationType.INSERT,
        )
        self._calls.call("add_dynamic_partitions", request, "rqst", None)

    # --- compactions

    def request_compaction(self, database: str, name: str, partition: str | None = None) -> int:
        """ALTER TABLE … COMPACT 'major'; the id of the request, or of the one that is there already."""
        request = ttypes.CompactionRequest(
            dbname=database, tablename=name, partitionname=partition, type=ttypes.CompactionType.MAJOR
        )
        return int(self._client.compact2(request).id)

    def compactions(self, database: str) -> list[ShownCompaction]:
        """SHOW COMPACTIONS for the tables of a database, by id."""
        rows = self._client.show_compact(ttypes.ShowCompactRequest()).compacts
        shown = [
            ShownCompaction(row.id, row.tablename, row.partitionname, row.state)
            for row in rows
            if row.dbname == database
        ]
        return sorted(shown, key=lambda row: row.id)

    # --- locks

    def lock_as_reader(self, transaction: int, database: str, name: str, partition: str | None = None) -> int:
        """The shared read lock a SELECT takes; returns the lock's id.

        :raises LockNotAcquiredError: the lock has to wait.
        """
        operation = ttypes.DataOperationType.SELECT
        return self._lock(transaction, database, name, partition, ttypes.LockType.SHARED_READ, operation)

    def lock_as_writer(self, transaction: int, database: str, name: str, partition: str | None = None) -> int:
        """The shared lock an INSERT takes; the metastore remembers that the transaction wrote here.

        On Hive 3 it is the readers' kind: there only one may hold a shared write lock, which is for UPDATE and DELETE.

        :raises LockNotAcquiredError: the lock has to wait.
        """
        operation = ttypes.DataOperationType.INSERT
        lock_type = ttypes.LockType.SHARED_READ if self.is_hive_3 else ttypes.LockType.SHARED_WRITE
        return self._lock(transaction, database, name, partition, lock_type, operation)

    def lock_as_dynamic_writer(self, transaction: int, database: str, name: str) -> int:
        """The lock of an INSERT that names its partitions when it has written them (:meth:`add_dynamic_partitions`).

        :raises LockNotAcquiredError: the lock has to wait.
        """
        operation = ttypes.DataOperationType.INSERT
        return self._lock(transaction, database, name, None, ttypes.LockType.SHARED_READ, operation, is_dynamic=True)

    def lock_without_transaction(self, database: str, name: str, partition: str | None = None) -> int:
        """The shared read lock of a reader that opens no transaction, as Hive 3 allows; returns the lock's id.

        :raises LockNotAcquiredError: the lock has to wait.
        """
        return self._lock(None, database, name, partition, ttypes.LockType.SHARED_READ, ttypes.DataOperationType.SELECT)

    def unlock(self, lock: int) -> None:
        """Lets go of a lock without a transaction."""
        self._client.unlock(ttypes.UnlockRequest(lockid=lock))

    def _lock(
        self,
        transaction: int | None,
        database: str,
        name: str,
        partition: str | None,
        lock_type: int,
        operation: int,
        *,
        is_dynamic: bool = False,
    ) -> int:
        component = ttypes.LockComponent(
            type=lock_type,
            level=ttypes.LockLevel.PARTITION if partition else ttypes.LockLevel.TABLE,
            dbname=database,
            tablename=name,
            partitionname=partition,
            operationType=operation,
            isAcid=True,
            isDynamicPartitionWrite=is_dynamic or None,
        )
        answer = self._client.lock(
            ttypes.LockRequest(component=[component], txnid=transaction, user=getpass.getuser(), hostname="localhost")
        )
        if answer.state != ttypes.LockState.ACQUIRED:
            raise LockNotAcquiredError(f"lock {answer.lockid} on {database}.{name}/{partition}: state {answer.state}")
        return int(answer.lockid)

    def _table(self, database: str, name: str) -> ttypes.Table:
        request = ttypes.GetTableRequest(
            dbName=database, tblName=name, capabilities=ttypes.ClientCapabilities(values=[_INSERT_ONLY_TABLES])
        )
        return self._client.get_table_req(request).table


class LockNotAcquiredError(Exception):
    """A lock that the metastore did not grant at once."""


def _columns(columns: Mapping[str, str]) -> list[ttypes.FieldSchema]:
    return [ttypes.FieldSchema(name=name, type=kind, comment=None) for name, kind in columns.items()]


def _copy_descriptor(descriptor: ttypes.StorageDescriptor, location: str) -> ttypes.StorageDescriptor:
    return ttypes.StorageDescriptor(**{**vars(descriptor), "location": location})


def _local_path(location: str) -> Path:
    return Path(location.removeprefix("file:"))
