"""A Hive 4 metastore without a server: grants what a batch asks for, and takes its time for each call."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_4, Hive
from airflow_provider_acid.acid.write_ids import TableWriteIds
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.compactions import CompactAnswer
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.values import (
    ColumnInfo,
    CompactionInfo,
    CompactionRow,
    CompactionState,
    DatabaseInfo,
    LockAnswer,
    LockState,
    OpenTxns,
    PartitionInfo,
    TableInfo,
    TxnInfo,
)
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.generated_table import COLUMNS
from tests.unit.compaction.managed_tables import managed_table

DATABASE, TABLE = "simulated", "t"

_UUID = "00000000-0000-4000-8000-000000000000"


class SimulatedMetastore:
    """What one table's compactions leave in a metastore; for any number of clients.

    :param location: of the table, in its conventional place.
    :param write_ids: of the table, all committed.
    :param call_seconds: how long each call takes.
    """

    def __init__(self, location: str, write_ids: int, call_seconds: float) -> None:
        self.location = location
        self.write_ids = write_ids
        self.calls: Counter[str] = Counter()
        self._call_seconds = call_seconds
        self._lock = threading.Lock()
        self._rows: dict[int, CompactionRow] = {}
        self._of_pool: dict[str, int] = {}
        self._of_entity: dict[Entity, list[int]] = {}
        self._open: set[int] = set()
        self._ids = itertools.count(1)
        self._txns = itertools.count(write_ids + 1)
        self._last_txn = write_ids

    def client(self) -> SimulatedClient:
        """A connection."""
        return SimulatedClient(self)

    def answered(self, name: str) -> None:
        """Note a call, which takes its time."""
        self.calls[name] += 1
        time.sleep(self._call_seconds)

    def rows(self, id: int | None, entity: Entity | None) -> list[CompactionRow]:
        """One request, those of an entity, or all."""
        with self._lock:
            if id is not None:
                return [self._rows[id]] if id in self._rows else []
            if entity is not None:
                return [self._rows[one] for one in self._of_entity.get(entity, ())]
            return list(self._rows.values())

    def request(self, entity: Entity, type: CompactionType, pool: str) -> int:
        """Make a request."""
        with self._lock:
            id = next(self._ids)
            self._rows[id] = CompactionRow(id, entity, type.value, CompactionState.INITIATED, pool=pool, enqueue_ms=1)
            self._of_pool[pool] = id
            self._of_entity.setdefault(entity, []).append(id)
            return id

    def claim(self, pool: str, worker_id: str) -> CompactionInfo:
        """Hand out the one request of a pool."""
        with self._lock:
            id = self._of_pool.pop(pool)
            claimed = replace(self._rows[id], state=CompactionState.WORKING, worker_id=worker_id, start_ms=1)
            self._rows[id] = claimed
            return CompactionInfo.of_row(claimed)

    def change(self, id: int, **facts: object) -> None:
        """Change what is on record of a request."""
        with self._lock:
            self._rows[id] = replace(self._rows[id], **facts)  # type: ignore[arg-type]

    def open_txn(self) -> int:
        """Open a transaction."""
        with self._lock:
            self._last_txn = next(self._txns)
            self._open.add(self._last_txn)
            return self._last_txn

    def end_txn(self, txn_id: int) -> None:
        """Commit or abort it."""
        with self._lock:
            self._open.discard(txn_id)

    def open_txns(self) -> OpenTxns:
        """What is open."""
        with self._lock:
            return OpenTxns(self._last_txn, tuple(sorted(self._open)), (), min(self._open, default=None))


class SimulatedClient(AcidMetastoreClient):
    """The calls of a client that a batch makes, without Thrift's coding."""

    def __init__(self, metastore: SimulatedMetastore) -> None:
        super().__init__([MetastoreAddress("nowhere")], user="benchmark")
        self._metastore = metastore

    def for_another_thread(self) -> SimulatedClient:
        """Another connection."""
        return self._metastore.client()

    def interrupt(self) -> None:
        """Nothing: no call lasts long."""

    def close(self) -> None:
        """There is no connection."""

    def probe(self) -> Hive:
        """Hive 4."""
        return HIVE_4

    def database_uuid(self) -> str:
        """Always the same."""
        return _UUID

    def config_value(self, name: str) -> str:
        """Where tables lie; the time-outs are as they come."""
        self._metastore.answered("get_config_value")
        warehouse = self._metastore.location.rpartition(f"/{DATABASE}.db/")[0]
        return {"metastore.warehouse.dir": warehouse, "metastore.txn.timeout": "300s"}.get(name, "")

    def get_database(self, name: str) -> DatabaseInfo:
        """The one there is."""
        self._metastore.answered("get_database")
        return DatabaseInfo(name, {}, self._metastore.location.rpartition("/")[0])

    def get_table(self, database: str, table: str) -> TableInfo:
        """The one there is."""
        self._metastore.answered("get_table_req")
        made = managed_table(database, table, self._metastore.location, {"transactional": "true"})
        return replace(made, columns=tuple(ColumnInfo(name, kind) for name, kind in COLUMNS.items()))

    def get_partitions(self, database: str, table: str, names: Sequence[str]) -> list[PartitionInfo]:
        """Each in its place."""
        self._metastore.answered("get_partitions_by_names")
        location = self._metastore.location
        return [PartitionInfo(name, (name.partition("=")[2],), f"{location}/{name}", {}, ()) for name in names]

    def compactions(
        self,
        *,
        id: int | None = None,
        entity: Entity | None = None,
        state: CompactionState | None = None,
        pool: str | None = None,
    ) -> list[CompactionRow]:
        """Requests as they are on record."""
        self._metastore.answered("show_compact")
        rows = self._metastore.rows(id, entity)
        return [row for row in rows if state in (None, row.state) and pool in (None, row.pool)]

    def compact(
        self,
        entity: Entity,
        type: CompactionType,
        *,
        pool: str | None = None,
        properties: Mapping[str, str] | None = None,
        initiator_id: str | None = None,
    ) -> CompactAnswer:
        """Accepted."""
        self._metastore.answered("compact2")
        return CompactAnswer(
            self._metastore.request(entity, type, pool or ""), "initiated", accepted=True, message=None
        )

    def find_next_compaction(self, worker_id: str, pool: str | None, worker_version: str) -> CompactionInfo:
        """That of the pool."""
        self._metastore.answered("find_next_compact2")
        return self._metastore.claim(pool or "", worker_id)

    def update_compactor_state(self, info: CompactionInfo, txn_id: int) -> None:
        """Recorded."""
        self._metastore.answered("update_compactor_state")
        self._metastore.change(info.id, highest_write_id=info.highest_write_id, txn_id=txn_id, run_as=info.run_as)

    def set_hadoop_job_id(self, compaction_id: int, job_id: str) -> None:
        """Recorded."""
        self._metastore.answered("set_hadoop_jobid")

    def mark_compacted(self, info: CompactionInfo) -> None:
        """Recorded."""
        self._metastore.answered("mark_compacted")
        self._metastore.change(info.id, state=CompactionState.READY_FOR_CLEANING)

    def open_compaction_txn(self, agent_info: str = "") -> int:
        """Opened."""
        self._metastore.answered("open_txns")
        return self._metastore.open_txn()

    def commit(self, txn_id: int) -> None:
        """Committed."""
        self._metastore.answered("commit_txn")
        self._metastore.end_txn(txn_id)

    def abort(self, txn_id: int) -> None:
        """Aborted."""
        self._metastore.answered("abort_txn")
        self._metastore.end_txn(txn_id)

    def heartbeat(self, txn_id: int) -> None:
        """Alive."""
        self._metastore.answered("heartbeat")

    def txn_timeout_seconds(self) -> float:
        """As it comes."""
        return 300.0

    def lock_shared_read(self, txn_id: int, entity: Entity, agent_info: str = "") -> LockAnswer:
        """Granted."""
        self._metastore.answered("lock")
        return LockAnswer(txn_id, LockState.ACQUIRED, None)

    def check_lock(self, lock_id: int, txn_id: int | None = None) -> LockAnswer:
        """Still granted."""
        self._metastore.answered("check_lock")
        return LockAnswer(lock_id, LockState.ACQUIRED, None)

    def open_transactions(self) -> OpenTxns:
        """Those of the batch."""
        self._metastore.answered("get_open_txns_req")
        return self._metastore.open_txns()

    def transactions(self) -> list[TxnInfo]:
        """Nobody else is at work."""
        self._metastore.answered("get_open_txns_info")
        return []

    def valid_write_ids(self, full_table_names: Sequence[str], valid_txn_list: str) -> list[TableWriteIds]:
        """All are committed."""
        self._metastore.answered("get_valid_write_ids")
        return [TableWriteIds(name, self._metastore.write_ids, frozenset(), frozenset()) for name in full_table_names]
