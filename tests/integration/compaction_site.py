"""A database of its own in a real metastore, with tables to write to and the compaction's parts to set upon them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import pyorc
import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.clean.cleaner import Cleaner
from airflow_provider_acid.compaction.clean.cleaning import Cleaning
from airflow_provider_acid.compaction.evaluate.initiator import Evaluation, Initiator
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome
from airflow_provider_acid.compaction.settings import CleaningLockAction, CompactionSettings
from airflow_provider_acid.compaction.steps import Step, StepListener, ignore_steps
from airflow_provider_acid.compaction.work.worker import LookedAt, Worker
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.database.written import WriteRecords
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.queues import open_queue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.thresholds import Thresholds
from tests.harness import the_hive_4
from tests.harness.acid_reader import Row, read_table
from tests.harness.compaction_chain import Job, compact_with
from tests.harness.current_rows import snapshot_now
from tests.harness.metastore_server import MetastoreServer
from tests.harness.plain_job import run_plainly
from tests.harness.thrift_admin import FULL_ACID, TableDefinition, ThriftAdmin
from tests.harness.withdrawal import withdraw
from tests.unit.merge.acid_files import Event, delete, insert

ON_BOTH_METASTORES = pytest.mark.parametrize("site", [the_hive_4.NAME, "hive_3"], indirect=True)
"""For tests of what holds whether the commit publishes or the rename does."""

ON_BOTH_WITH_DATABASE = pytest.mark.parametrize("site", [the_hive_4.NAME_WITH_DATABASE, "hive_3"], indirect=True)
"""The same, for what needs the metastore's database."""

WITH_DATABASE = pytest.mark.parametrize("site", [the_hive_4.NAME_WITH_DATABASE], indirect=True)

ON_EVERY_KIND = pytest.mark.parametrize("site", ["hive_4", the_hive_4.NAME, "hive_3"], indirect=True)
"""As :data:`ON_BOTH_METASTORES`, and on a Hive 4 whose database is not at hand and whose own threads are off."""

ON_EVERY_METASTORE = pytest.mark.parametrize(
    "site", ["hive_4", "hive_4_alpha", "hive_4_1", "hive_4_2", "hive_3"], indirect=True
)
"""For tests of what Hive's own threads and requests could undo: the short form of those that ``./run-tests every-hive``
runs fully. All but 4.0.1 have their threads on, as is the default since 4.1."""

WITHOUT_HIVES_THREADS = pytest.mark.parametrize("site", ["hive_4"], indirect=True)
"""For tests of rows that Hive 4's own Cleaner would end before one can look."""

ON_HIVE_3 = pytest.mark.parametrize("site", ["hive_3"], indirect=True)


class TxnType(IntEnum):
    """Hive 4's types of transactions, but for those of replication and materialized views."""

    DEFAULT = 0
    READ_ONLY = 2
    COMPACTION = 3
    SOFT_DELETE = 5
    REBALANCE_COMPACTION = 6


RowKey = tuple[int, int]
"""Write id and row number; the tables here have one bucket and one statement per write."""

_SCHEMA = (
    "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
    "row:struct<v:bigint>>"
)


@dataclass
class Write:
    """One writer's transaction on one table, or on one partition of it, and its write id."""

    table: AcidTable
    txn: int
    id: int
    partition: str | None

    def insert(self, *values: int) -> Write:
        """An insert delta with these rows, numbered from 0."""
        events = [insert(self.id, number, value) for number, value in enumerate(values)]
        self.table.write_file(f"delta_{self.id:07d}_{self.id:07d}_0000", events, self.partition)
        return self

    def delete(self, *keys: RowKey) -> Write:
        """A delete delta that names these rows."""
        events = [delete(write_id, number, self.id) for write_id, number in sorted(keys)]
        self.table.write_file(f"delete_delta_{self.id:07d}_{self.id:07d}_0000", events, self.partition)
        return self

    def commit(self) -> Write:
        self.table.site.end(self.txn, self.table.site.admin.commit)
        return self

    def abort(self) -> Write:
        self.table.site.end(self.txn, self.table.site.admin.abort)
        return self


@dataclass
class AcidTable:
    """A full-ACID table with the one column ``v bigint``."""

    site: Site
    name: str
    location: Path
    partition_keys: tuple[str, ...] = ()

    def entity(self, partition: str | None = None) -> Entity:
        return Entity(self.site.database, self.name, partition)

    def folder(self, partition: str | None = None) -> Path:
        return self.location / (partition or "")

    def add_partition(self, partition: str) -> None:
        (folder,) = self.site.admin.add_partitions(self.site.database, self.name, [partition])
        folder.mkdir(parents=True, exist_ok=True)

    def writes(self, count: int, partition: str | None = None) -> list[Write]:
        """So many transactions with their write ids, opened together as a streaming writer's batch is."""
        admin = self.site.admin
        txns = admin.open_transactions(count)
        self.site.open_txns |= set(txns)
        ids = admin.allocate_write_ids(self.site.database, self.name, txns)
        for txn in txns:
            admin.lock_as_writer(txn, self.site.database, self.name, partition)
        return [Write(self, txn, ids[txn], partition) for txn in txns]

    def write(self, partition: str | None = None) -> Write:
        (write,) = self.writes(1, partition)
        return write

    def insert(self, *values: int, partition: str | None = None) -> Write:
        """A committed insert."""
        return self.write(partition).insert(*values).commit()

    def write_file(
        self, directory: str, events: Iterable[Event], partition: str | None = None, bucket: int = 0
    ) -> Path:
        file = self.folder(partition) / directory / f"bucket_{bucket:05d}"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as output, pyorc.Writer(output, _SCHEMA) as writer:
            writer.writerows(list(events))
        return file

    def rows(self, *, check_visibility: bool = True) -> dict[RowKey, Any]:
        """What a reader who starts now sees: the values by write id and row number."""
        found = self.site.read(self.name, {"v": "bigint"}, self.partition_keys, check_visibility=check_visibility)
        return {(row.row_id[0], row.row_id[2]): int(str(row.values["v"])) for row in found}

    def values(self) -> list[int]:
        return sorted(self.rows().values())

    def directories(self, partition: str | None = None) -> list[str]:
        return sorted(child.name for child in self.folder(partition).iterdir() if child.is_dir())

    def visible(self, partition: str | None = None) -> list[str]:
        """Bases and deltas; on Hive 3 a staging directory stays until the cleaning."""
        return [name for name in self.directories(partition) if not name.startswith("_")]

    def fingerprint(self) -> Mapping[str, str]:
        """Every file and directory below the table, with a checksum of its bytes."""
        return fingerprint(self.location)


def fingerprint(folder: Path) -> Mapping[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
        if not path.is_dir() or not path.is_symlink()
    }


@dataclass
class Site:
    """A database and who works on it.

    :param open_txns: transactions to end when the test is over; they would hold back everybody's cleaner.
    :param hive_database: the metastore's own, which Hive 3.1 needs.
    """

    server: MetastoreServer
    admin: ThriftAdmin
    client: AcidMetastoreClient
    database: str
    settings: CompactionSettings = field(
        default_factory=lambda: CompactionSettings(thresholds=Thresholds(delta_num_threshold=1))
    )
    open_txns: set[int] = field(default_factory=set)
    hive_database: MetastoreDatabase | None = None

    @property
    def queue(self) -> CompactionQueue:
        return open_queue(self.client, self.hive_database)

    @property
    def claims_by_id(self) -> bool:
        """Whether a request of somebody else can be claimed whatever stands before it."""
        return self.hive_database is not None

    @property
    def renames_publish(self) -> bool:
        """Whether this is Hive 3."""
        return self.admin.is_hive_3

    def published(self, name: str, txn_id: int | None) -> str:
        """What a directory is called that a compaction made in that transaction."""
        return name if self.renames_publish else f"{name}_v{txn_id:07d}"

    def table(self, name: str = "t", *, partitions: Iterable[str] = (), **changes: Any) -> AcidTable:
        """A new table; with partitions it is partitioned by ``p string``."""
        names = list(partitions)
        properties = {**FULL_ACID, **self.server.left_to_us, **changes.pop("properties", {})}
        definition = TableDefinition(
            self.database, name, {"v": "bigint"}, partition_keys={"p": "string"} if names else {}, properties=properties
        )
        location = self.admin.create_table(replace(definition, **changes))
        location.mkdir(parents=True, exist_ok=True)
        table = AcidTable(self, name, location, ("p",) if names else ())
        for partition in names:
            table.add_partition(partition)
        return table

    def set_properties(self, table: AcidTable, properties: Mapping[str, str]) -> None:
        self.admin.set_table_properties(self.database, table.name, properties)

    def set_database_properties(self, properties: Mapping[str, str]) -> None:
        self.admin.set_database_properties(self.database, properties)

    def reader(self, table: AcidTable, partition: str | None = None) -> int:
        """A transaction that reads the table; its id."""
        (txn,) = self.admin.open_transactions()
        self.open_txns.add(txn)
        self.admin.lock_as_reader(txn, self.database, table.name, partition)
        return txn

    def open_txn(self, type: TxnType) -> int:
        """A transaction of that type, which Hive 3 takes for one like all others; its id."""
        txn = self.client._open_txn(type)
        self.open_txns.add(txn)
        return txn

    def clean_beside_readers(self) -> None:
        """Let the cleaner do without the EXCLUSIVE lock where it is not to be had at once."""
        self.settings = replace(
            self.settings, cleaner_lock_wait_seconds=0.0, cleaner_lock_timeout_action=CleaningLockAction.DELETE
        )

    def end(self, txn: int, how: Callable[[int], None]) -> None:
        how(txn)
        self.open_txns.discard(txn)

    def withdraw_requests(self) -> None:
        """Requests without a pool are handed out by age, whatever their database: those of other tests have to go."""
        queue = self.queue
        waiting = [row.id for row in queue.rows(state=CompactionState.INITIATED) if row.pool is None]
        if waiting and self.renames_publish:
            self.server.server_database.query("DELETE FROM COMPACTION_QUEUE WHERE cq_state = 'i'")
        elif waiting and not queue.hive.has_pools:
            self.server.server_database.query('DELETE FROM "COMPACTION_QUEUE" WHERE "CQ_STATE" = \'i\'')
        elif waiting:
            withdraw(self.client, waiting)

    def close(self) -> None:
        for txn in list(self.open_txns):
            self.end(txn, self.admin.abort)

    def read(
        self, name: str, columns: Mapping[str, str], partition_keys: Iterable[str], *, check_visibility: bool = True
    ) -> list[Row]:
        """All rows by the snapshot of this moment."""
        snapshot = snapshot_now(self.admin, self.database, name, check_visibility=check_visibility)
        location = self.admin.table_location(self.database, name)
        return read_table(location, columns, snapshot, partition_keys=list(partition_keys))

    def worker(
        self, identity: str = "task", on_step: StepListener = ignore_steps, looked_at: LookedAt | None = None
    ) -> Worker:
        def transaction(entity: Entity, agent_info: str) -> CompactionTransaction:
            return CompactionTransaction(self.client, entity, agent_info=agent_info, heartbeat_seconds=60.0)

        return Worker(
            self.client,
            self.queue,
            transaction,
            self.settings,
            identity=identity,
            host="here",
            looked_at=looked_at,
            on_step=on_step,
        )

    def begin(self, entity: Entity, identity: str = "task") -> ActiveCompaction:
        begun = self.worker(identity).begin(due(entity))
        assert isinstance(begun, ActiveCompaction), begun
        return begun

    def compact(
        self, what: Entity | DuePartition, *, job: Job = run_plainly, on_step: StepListener = ignore_steps
    ) -> Outcome:
        """Begin, merge in this process, finish; a lock is waited for."""
        wanted = what if isinstance(what, DuePartition) else due(what)
        return compact_with(self.worker(on_step=on_step), wanted, job).outcome

    def clean(self, *entities: Entity, on_step: StepListener = ignore_steps) -> tuple[Cleaning, ...]:
        """One run of the cleaner; its second look at the transactions follows at once, for nobody opens any."""
        cleaner = Cleaner(self.client, self.queue, self.settings, on_step=on_step, sleep=lambda seconds: None)
        return cleaner.clean(entities)

    def look(self, *entities: Entity) -> tuple[Cleaning, ...]:
        return Cleaner(self.client, self.queue, self.settings).look(entities)

    def evaluate(self, *include: str, exclude: Iterable[str] = ()) -> Evaluation:
        selection = TableSelection.of(include or [f"{self.database}.*"], list(exclude))
        return self.initiator(self.settings).evaluate(selection)

    def initiator(self, settings: CompactionSettings) -> Initiator:
        writes = None if self.hive_database is None else WriteRecords(self.hive_database)
        return Initiator(self.client, self.queue, settings, writes)

    def rows(self, entity: Entity) -> list[CompactionRow]:
        return self.queue.rows(entity=entity)

    def row(self, id: int | None) -> CompactionRow:
        assert id is not None
        row = self.queue.row(id)
        assert row is not None
        return row


def due(entity: Entity, request_id: int | None = None, type: CompactionType = CompactionType.MAJOR) -> DuePartition:
    return DuePartition(entity, type, "test", request_id)


class StepRecorder:
    """Calls a function after every step, with the steps so far remembered.

    :param at: what to do at which step.
    """

    def __init__(self, at: Callable[[Step], None]) -> None:
        self._at = at
        self.steps: list[Step] = []

    def __call__(self, step: Step, entity: Entity) -> None:
        self.steps.append(step)
        self._at(step)
