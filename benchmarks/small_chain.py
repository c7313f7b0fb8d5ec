"""The whole chain of many small partitions: claimed, merged by one Spark application and published, on a metastore.

On this machine's disk, or on HDFS or S3: there the partitions are made in the metastore's own warehouse, and are given
their locations in its database, for it knows no such store.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.sealing import RunKey
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.clean.cleaner import Cleaner
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.run.run_place import RunPlace, run_name
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.work.batch import CompactionBatch
from airflow_provider_acid.compaction.work.worker import LookedAt, Worker
from airflow_provider_acid.hooks.connected_batch import DEFAULT_MAX_ACTIVE_PARTITIONS, MAX_SMALL_PARTITIONS
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.queues import open_queue
from airflow_provider_acid.metastore.thrift.catalog import PARTITIONS_PER_CALL
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.plan.plan import CompactionType
from benchmarks.acid_tables import Shape, write_table
from benchmarks.counted_calls import StorageCalls
from benchmarks.counted_client import CountedClient
from benchmarks.measured import Findings, Measured, figure
from benchmarks.metering import Meter, this_process, tree_of
from benchmarks.rounds import Say
from benchmarks.spark_places import SparkPlace
from benchmarks.stores import Warehouse
from tests.harness.generated_table import COLUMNS
from tests.harness.hive_tables import check_place, set_location
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import TableDefinition, ThriftAdmin

CHAIN_KEYS = ("chain_small_per_second", "chain_small_cpu_ms", "chain_small_growth", "clean_small_per_second")

STORE_KEYS = {"webhdfs": "chain_small_hdfs_per_second", "s3": "chain_small_s3_per_second"}
"""By the name of the store."""

SMALL = Shape(rows=3000, touched=1.0)
_DATABASE = "small"
_PUTTING_THREADS = 8


@dataclass(frozen=True)
class ChainPlace:
    """Where tables lie that are compacted, and how an operator reaches them.

    :param name: told of what is measured there.
    :param settings: of operator and cleaner.
    :param warehouse: None for the metastore's own.
    """

    folder: Path
    name: str = ""
    settings: CompactionSettings = field(default_factory=CompactionSettings)
    warehouse: Warehouse | None = None

    @classmethod
    def on_disk(cls, folder: Path) -> ChainPlace:
        """In the metastore's own warehouse; the runs go into a folder."""
        (folder / "runs").mkdir(parents=True, exist_ok=True)
        return cls(folder, settings=CompactionSettings(run_directory=str(folder / "runs")))

    @classmethod
    def on_store(cls, name: str, folder: Path, warehouse: Warehouse) -> ChainPlace:
        """In another warehouse, the runs too."""
        warehouse.make("runs")
        settings = CompactionSettings(
            run_directory=f"{warehouse.uri}/runs",
            storages=warehouse.storages,
            exclusive_locations=(f"{warehouse.uri}/*",),
        )
        return cls(folder, name, settings, warehouse)

    def put(self, model: Path, uri: str, names: Sequence[str]) -> None:
        """Copy a partition's files to several places."""
        if self.warehouse is None:
            for name in names:
                shutil.copytree(model, Path(uri.removeprefix("file:")) / name, dirs_exist_ok=True)
            return
        storage = self.warehouse.storages.open(self.warehouse.uri)
        below = uri.removeprefix(f"{self.warehouse.uri}/")
        contents = {str(file.relative_to(model)): file.read_bytes() for file in model.glob("*/*")}

        def put_one(name: str) -> None:
            for path, content in contents.items():
                storage.make_directory(f"{below}/{name}/{path.rpartition('/')[0]}")
                storage.write_new(f"{below}/{name}/{path}", content)

        with ThreadPoolExecutor(_PUTTING_THREADS) as threads:
            list(threads.map(put_one, names))


def measure_small_chain(
    server: MetastoreServer, spark: SparkPlace, folder: Path, partitions: Sequence[int], say: Say
) -> Findings:
    """Compact a few, then more, as an operator with default settings does: one batch, one application.

    :param server: a Hive 4 metastore with a database server of its own.
    :param partitions: how many, the second five times the first.
    """
    place = ChainPlace.on_disk(folder)
    found = [_measure(server, spark, place, count, say) for count in partitions]
    few, more = (count / sides[0].costs[0].seconds for count, (sides, _) in zip(partitions, found, strict=True))
    sides, _ = found[0]
    cpu_ms = sum(side.costs[0].cpu_seconds for side in sides) / partitions[0] * 1000
    cleaned = [_clean(server, place, count, say) for count in partitions]
    cleaning, _ = cleaned[0]
    return Findings(
        (*(side for sides, _ in found for side in sides), *(side for side, _ in cleaned)),
        (
            figure("chain_small_per_second", few),
            figure("chain_small_cpu_ms", cpu_ms),
            figure("chain_small_growth", more / few),
            figure("clean_small_per_second", partitions[0] / cleaning.costs[0].seconds),
        ),
        (*(note for _, notes in found for note in notes), *(note for _, notes in cleaned for note in notes)),
    )


def measure_chain_on(
    place: ChainPlace, server: MetastoreServer, spark: SparkPlace, partitions: int, say: Say
) -> Findings:
    """The same of so many on a store."""
    sides, notes = _measure(server, spark, place, partitions, say)
    cleaning, cleaning_notes = _clean(server, place, partitions, say)
    rate = figure(STORE_KEYS[place.name], partitions / sides[0].costs[0].seconds)
    return Findings((*sides, cleaning), (rate,), (*notes, *cleaning_notes))


def _measure(
    server: MetastoreServer, spark: SparkPlace, place: ChainPlace, partitions: int, say: Say
) -> tuple[list[Measured], list[str]]:
    work = _work("chain", place, partitions)
    say(f"{work}: making them")
    entities = make_small_partitions(server, place, f"{place.name}t{partitions}", partitions)
    # The application is this process's child, and counts with it when it has ended.
    meters = {
        "project": Meter(lambda: [*this_process(), *spark.processes()]),
        "metastore": Meter(tree_of(server.pid or 0)),
        "database": Meter(tree_of(server.server_database.server.pid or 0)),
    }
    CountedClient.calls.clear()
    say(f"{work}: compacting")
    with ExitStack() as running:
        asked = running.enter_context(StorageCalls.counted())
        for meter in meters.values():
            running.enter_context(meter.running())
        outcomes = compact_as_operator(
            lambda: CountedClient([MetastoreAddress(server.host, server.port)]),
            place.settings,
            entities,
            lambda run: spark.submit(run, place.folder),
            max_active=DEFAULT_MAX_ACTIVE_PARTITIONS,
            max_small=MAX_SMALL_PARTITIONS,
        )
    wrong = [outcome for outcome in outcomes if outcome.state is not OutcomeState.COMPACTED]
    if wrong:
        raise RuntimeError(f"{len(wrong)} of {len(outcomes)}: {wrong[0].message}")
    first, *others = (Measured(work, side, tuple(meter.costs)) for side, meter in meters.items())
    counted, notes = _with_calls(first, partitions, asked)
    return [counted, *others], notes


def _work(what: str, place: ChainPlace, partitions: int) -> str:
    return f"{what}, {partitions:,} small partitions" + (f" on {place.name}" if place.name else "")


def _with_calls(measured: Measured, partitions: int, asked: StorageCalls) -> tuple[Measured, list[str]]:
    """With how many calls there were, and which for each partition."""
    counts = {"metastore": CountedClient.calls, "storage": asked.calls}
    counted = replace(measured, metastore_calls=counts["metastore"].total(), storage_calls=counts["storage"].total())
    notes = [
        f"{measured.work}: {calls.total() / partitions:.1f} {whose} calls each: "
        + ", ".join(f"{name} {count / partitions:.1f}" for name, count in calls.most_common())
        for whose, calls in counts.items()
    ]
    return counted, notes


def _clean(server: MetastoreServer, place: ChainPlace, partitions: int, say: Say) -> tuple[Measured, list[str]]:
    """Clean what was compacted, as the cleaner's task does it."""
    work = _work("cleaning", place, partitions)
    say(work)
    entities = [Entity(_DATABASE, f"{place.name}t{partitions}", name) for name in partition_names(partitions)]
    meter = Meter(this_process)

    @contextmanager
    def connect() -> Iterator[tuple[AcidMetastoreClient, CompactionQueue]]:
        with CountedClient([MetastoreAddress(server.host, server.port)]) as client:
            yield client, open_queue(client)

    CountedClient.calls.clear()
    with StorageCalls.counted() as asked, meter.running(), connect() as (client, queue):
        cleanings = Cleaner(client, queue, place.settings, connect=connect).clean(entities)
    wrong = [cleaning for cleaning in cleanings if cleaning.state is not CleaningState.CLEANED]
    if wrong or len(cleanings) != partitions:
        raise RuntimeError(f"{len(wrong)} of {len(cleanings)}: {wrong[:1]}")
    return _with_calls(Measured(work, "project", tuple(meter.costs)), partitions, asked)


def partition_names(partitions: int) -> list[str]:
    """Of a table with so many."""
    return [f"p={number:06d}" for number in range(partitions)]


def make_small_partitions(server: MetastoreServer, place: ChainPlace, table: str, partitions: int) -> list[Entity]:
    """A table of small partitions, all of them due."""
    model = place.folder / "model"
    if not model.exists():
        write_table(SMALL, model)
    names = partition_names(partitions)
    with ThriftAdmin(server.host, server.port) as admin:
        admin.create_database(_DATABASE)
        admin.create_table(TableDefinition(_DATABASE, table, COLUMNS, {"p": "string"}))
        uri = admin.table_uri(_DATABASE, table)
        for start in range(0, partitions, PARTITIONS_PER_CALL):
            admin.add_partitions(_DATABASE, table, names[start : start + PARTITIONS_PER_CALL])
        transactions = admin.open_transactions(SMALL.write_ids)
        admin.allocate_write_ids(_DATABASE, table, transactions)
        for transaction in transactions:
            admin.commit(transaction)
        if place.warehouse is not None:
            usual, uri = uri, f"{place.warehouse.uri}/{_DATABASE}.db/{table}"
            set_location(server, usual, uri)
            check_place(admin, _DATABASE, table, place.warehouse.uri)
    place.put(model, uri, names)
    return [Entity(_DATABASE, table, name) for name in names]


def compact_as_operator(
    connect: Callable[[], AcidMetastoreClient],
    settings: CompactionSettings,
    entities: Sequence[Entity],
    be_the_application: Callable[[RunDirectory], object],
    *,
    max_active: int,
    max_small: int = 0,
) -> tuple[Outcome, ...]:
    """Compact partitions in one batch, as an operator does.

    :param connect: opens a metastore connection.
    :param settings: name the directory of the runs.
    :param be_the_application: carries out a run, and returns when that has ended.
    """
    looked_at = LookedAt()

    @contextmanager
    def open_worker() -> Iterator[Worker]:
        with connect() as client:

            def transaction(entity: Entity, agent_info: str) -> CompactionTransaction:
                return CompactionTransaction(client, entity, agent_info=agent_info)

            yield Worker(
                client,
                open_queue(client),
                transaction,
                settings,
                identity="benchmark",
                host="here",
                looked_at=looked_at,
            )

    def make_run_directory(worker: Worker, first: ActiveCompaction) -> RunDirectory:
        place = RunPlace.of(settings.storages, settings.run_directory, first.table_location)
        return RunDirectory(settings.storages, place, RunKey.new(run_name(worker.metastore)))

    items = [DuePartition(entity, CompactionType.MAJOR, "benchmark") for entity in entities]
    batch = CompactionBatch(items, open_worker, make_run_directory, max_active=max_active, max_small=max_small)
    batch.start()
    run = batch.wait_until_planned()
    try:
        if run is not None:
            be_the_application(run)
    finally:
        batch.application_ended()
    return batch.join()
