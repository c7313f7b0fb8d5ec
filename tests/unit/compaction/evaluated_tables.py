"""A metastore and a storage without servers, with as many tables and partitions as a test of the Initiator wants."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field, replace
from typing import cast
from unittest.mock import patch

from typing_extensions import Self

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_4, Hive
from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.acid.write_ids import TableWriteIds
from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.compaction.evaluate import looking
from airflow_provider_acid.compaction.evaluate.demand import Demand
from airflow_provider_acid.compaction.evaluate.initiator import Evaluation, EvaluationObserver, Initiator
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.exceptions import ObjectNotFoundError
from airflow_provider_acid.filesystem import Storage, Storages
from airflow_provider_acid.metastore.database.written import WriteRecords
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import (
    CompactionRow,
    DatabaseInfo,
    OpenTxns,
    PartitionInfo,
    TableInfo,
    TxnInfo,
)
from airflow_provider_acid.plan.thresholds import Thresholds
from airflow_provider_acid.storages.small_files import SIDE_FILE_BYTES
from tests.unit.compaction.managed_tables import managed_table

NO_DEMAND = Demand()
WAREHOUSE = "file:/warehouse/d.db"
METASTORE_ID = "51d5a1a9-6f9f-4a3c-8c8e-0d2f6a1b7c3d"
NEWEST = 9
"""High-water mark of every table and of the transactions."""


def deltas(count: int, entry: Callable[[str, int], FileEntry] = FileEntry) -> Listing:
    """A partition of so many inserts."""
    names = [f"delta_{number:07d}_{number:07d}_0000" for number in range(1, count + 1)]
    return Listing(tuple(entry(f"{name}/bucket_00000", 100) for name in names), tuple(names))


class FakeClient(AcidMetastoreClient):
    """A metastore with the database ``d``; every call is noted, with the thread it was made in.

    What is made for other threads notes its calls in the same list, and its threads for itself.
    """

    def __init__(
        self, warehouse: str, partitions: Mapping[str, int | None], parameters: Mapping[str, Mapping[str, str]]
    ) -> None:
        self.warehouse = warehouse
        self.partitions = partitions
        self.parameters = parameters
        self.aborted: Mapping[str, frozenset[int]] = {}
        self.partition_format = ""
        self.now_ms = 0
        self.on_call: Callable[[str], object] = lambda name: None
        self.calls: list[str] = []
        self.threads: set[threading.Thread] = set()
        self.others: list[FakeClient] = []
        self.interrupted = threading.Event()

    def for_another_thread(self) -> Self:
        other = copy(self)
        other.threads, other.interrupted = set(), threading.Event()
        self.others.append(other)
        return other

    def interrupt(self) -> None:
        self.interrupted.set()

    def close(self) -> None:
        """There is no connection."""

    def database_uuid(self) -> str | None:
        self._note("database_uuid")
        return METASTORE_ID

    def databases(self) -> list[str]:
        self._note("databases")
        return ["d"]

    def get_database(self, name: str) -> DatabaseInfo:
        self._note("get_database")
        return DatabaseInfo(name, {}, self.warehouse)

    def config_value(self, name: str) -> str:
        self._note("config_value")
        return "file:/warehouse"

    def tables(self, database: str, pattern: str = "*") -> list[str]:
        self._note("tables")
        return list(self.partitions)

    def get_table(self, database: str, table: str) -> TableInfo:
        self._note("get_table")
        location = f"{self.warehouse}/{table}"
        parameters = {"transactional": "true", **self.parameters.get(table, {})}
        return managed_table("d", table, location, parameters, partitioned=self.partitions[table] is not None)

    def get_partition_names(self, database: str, table: str) -> list[str]:
        self._note("get_partition_names")
        return [f"p={number:05d}" for number in range(self.partitions[table] or 0)]

    def get_partitions(self, database: str, table: str, names: Sequence[str]) -> list[PartitionInfo]:
        self._note("get_partitions")
        location = f"{self.warehouse}/{table}"
        return [PartitionInfo(name, (name[2:],), f"{location}/{name}", {}, (), self.partition_format) for name in names]

    def open_transactions(self) -> OpenTxns:
        self._note("open_transactions")
        return OpenTxns(NEWEST, (), (), None)

    def valid_write_ids(self, full_table_names: Sequence[str], valid_txn_list: str) -> list[TableWriteIds]:
        self._note("valid_write_ids")
        return [
            TableWriteIds(name, NEWEST, frozenset(), self.aborted.get(name, frozenset())) for name in full_table_names
        ]

    def transactions(self) -> list[TxnInfo]:
        self._note("transactions")
        return []

    def server_now_ms(self) -> int:
        self._note("server_now_ms")
        return self.now_ms

    def _note(self, name: str) -> None:
        self.calls.append(name)
        self.threads.add(threading.current_thread())
        self.on_call(name)


class FakeRecords:
    """A metastore's records of writes: names of partitions by table."""

    def __init__(self, partitions: Mapping[str, Set[str | None]]) -> None:
        self._partitions = partitions
        self.asked: list[str] = []

    def tables(self) -> frozenset[str]:
        return frozenset(f"d.{table}" for table in self._partitions)

    def partitions(self, database: str, table: str) -> frozenset[str | None]:
        self.asked.append(f"{database}.{table}")
        return frozenset(self._partitions[table])


class FakeQueue:
    """A queue with rows and nothing else; on Hive 4 they are handed out one after the other."""

    database = None

    def __init__(self, hive: Hive, rows: Iterable[CompactionRow]) -> None:
        self.hive = hive
        self._rows = list(rows)

    def rows(self) -> list[CompactionRow]:
        return self._rows

    def line(self, rows: Iterable[CompactionRow]) -> list[CompactionRow]:
        return [row for row in rows if row.pool is None] if self.hive.publishes_by_commit else []


@dataclass
class FakeStorage:
    """What lies at one location, by a function of it; who used it is noted."""

    location: str
    site: FakeStorages
    threads: set[threading.Thread] = field(default_factory=set)

    def list(self, path: str = "", into: Callable[[str], bool] | None = None) -> Listing:
        assert path == ""
        self._note()
        return self.site.listing(self.location)

    def read(self, path: str, most_bytes: int = SIDE_FILE_BYTES) -> bytes:
        self._note()
        return self.site.content(self.location, path)

    def _note(self) -> None:
        self.threads.add(threading.current_thread())


@dataclass(frozen=True)
class FakeStorages(Storages):
    """Opens storages without servers.

    :param listing: of a location.
    :param content: of a file at a location.
    """

    listing: Callable[[str], Listing] = lambda location: deltas(3)
    content: Callable[[str, str], bytes] = lambda location, path: b""
    opened: list[tuple[FakeStorage, threading.Thread]] = field(default_factory=list)

    def open(self, location: str) -> Storage:
        storage = FakeStorage(location, self)
        self.opened.append((storage, threading.current_thread()))
        return cast(Storage, storage)


class EvaluatedTables:
    """Tables to evaluate.

    :param partitions: how many each table has; None for one without partition keys.
    :param parameters: of tables, beside ``transactional``.
    :param recorded: partitions to which writes are recorded, by table, where only those are candidates.
    """

    def __init__(
        self,
        partitions: Mapping[str, int | None],
        storages: Storages,
        *,
        warehouse: str = WAREHOUSE,
        parameters: Mapping[str, Mapping[str, str]] | None = None,
        rows: Iterable[CompactionRow] = (),
        hive: Hive = HIVE_4,
        recorded: Mapping[str, Set[str | None]] | None = None,
    ) -> None:
        self.observer: EvaluationObserver | None = None
        self.records = None if recorded is None else FakeRecords(recorded)
        self.client = FakeClient(warehouse, partitions, parameters or {})
        self.queue = FakeQueue(hive, rows)
        self.settings = CompactionSettings(
            thresholds=Thresholds(delta_num_threshold=2),
            candidates=Candidates.ALL if recorded is None else Candidates.WRITTEN,
            storages=storages,
        )

    def evaluate(
        self, *include: str, threads: int = 8, patience_seconds: float = 0.0, demand: Demand = NO_DEMAND
    ) -> Evaluation:
        """Look at the tables.

        :param patience_seconds: how long is waited for listings before threads begin; from the start unless told
            otherwise.
        """
        settings = replace(self.settings, listing_threads=threads)
        records = cast(WriteRecords | None, self.records)
        initiator = Initiator(self.client, cast(CompactionQueue, self.queue), settings, records, demand, self.observer)
        with patch.object(looking, "PATIENCE_SECONDS", patience_seconds):
            return initiator.evaluate(TableSelection.of(include or ["d.*"]))


def entity(table: str, partition: int | None = None) -> Entity:
    return Entity("d", table, None if partition is None else f"p={partition:05d}")


def dropped(name: str) -> ObjectNotFoundError:
    return ObjectNotFoundError(name, "the metastore does not know it", "look who dropped it")
