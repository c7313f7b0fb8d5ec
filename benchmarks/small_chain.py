"""The whole chain of many small partitions: claimed, merged by one Spark application and published, on a metastore."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.queues import open_queue
from airflow_provider_acid.metastore.thrift.catalog import PARTITIONS_PER_CALL
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.operators.compaction import DEFAULT_MAX_ACTIVE_PARTITIONS, MAX_SMALL_PARTITIONS
from airflow_provider_acid.plan.plan import CompactionType
from benchmarks.acid_tables import Shape, write_table
from benchmarks.counted_client import CountedClient
from benchmarks.measured import Findings, Measured, figure
from benchmarks.metering import Meter, this_process, tree_of
from benchmarks.rounds import Say
from benchmarks.spark_places import SparkPlace
from tests.harness.generated_table import COLUMNS
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import TableDefinition, ThriftAdmin

CHAIN_KEYS = ("chain_small_per_second", "chain_small_cpu_ms", "chain_small_growth", "clean_small_per_second")

SMALL = Shape(rows=3000, touched=1.0)
_DATABASE = "small"


def measure_small_chain(
    server: MetastoreServer, spark: SparkPlace, folder: Path, partitions: Sequence[int], say: Say
) -> Findings:
    """Compact a few, then more, as an operator with default settings does: one batch, one application.

    :param server: a Hive 4 metastore with a database server of its own.
    :param partitions: how many, the second five times the first.
    """
    (folder / "runs").mkdir(parents=True)
    write_table(SMALL, folder / "model")
    with ThriftAdmin(server.host, server.port) as admin:
        admin.create_database(_DATABASE)
    found = [_measure(server, spark, folder, count, say) for count in partitions]
    few, more = (count / sides[0].costs[0].seconds for count, (sides, _) in zip(partitions, found, strict=True))
    sides, _ = found[0]
    cpu_ms = sum(side.costs[0].cpu_seconds for side in sides) / partitions[0] * 1000
    cleaned = [_clean(server, count, say) for count in partitions]
    cleaning, _ = cleaned[0]
    return Findings(
        (*(side for sides, _ in found for side in sides), *(side for side, _ in cleaned)),
        (
            figure("chain_small_per_second", few),
            figure("chain_small_cpu_ms", cpu_ms),
            figure("chain_small_growth", more / few),
            figure("clean_small_per_second", partitions[0] / cleaning.costs[0].seconds),
        ),
        (*(note for _, note in found), *(note for _, note in cleaned)),
    )


def _measure(
    server: MetastoreServer, spark: SparkPlace, folder: Path, partitions: int, say: Say
) -> tuple[list[Measured], str]:
    work = f"chain, {partitions:,} small partitions"
    say(f"{work}: making them")
    entities = make_small_partitions(server, folder, f"t{partitions}", partitions)
    # The application is this process's child, and counts with it when it has ended.
    meters = {
        "project": Meter(lambda: [*this_process(), *spark.processes()]),
        "metastore": Meter(tree_of(server.pid or 0)),
        "database": Meter(tree_of(server.server_database.server.pid or 0)),
    }
    CountedClient.calls.clear()
    say(f"{work}: compacting")
    with ExitStack() as running:
        for meter in meters.values():
            running.enter_context(meter.running())
        outcomes = compact_as_operator(
            lambda: CountedClient([MetastoreAddress(server.host, server.port)]),
            folder,
            entities,
            lambda run: spark.submit(run, folder),
            max_active=DEFAULT_MAX_ACTIVE_PARTITIONS,
            max_small=MAX_SMALL_PARTITIONS,
        )
    wrong = [outcome for outcome in outcomes if outcome.state is not OutcomeState.COMPACTED]
    if wrong:
        raise RuntimeError(f"{len(wrong)} of {len(outcomes)}: {wrong[0].message}")
    calls, named = _calls(work, partitions)
    sides = [
        Measured(work, side, tuple(meter.costs), calls if side == "project" else None) for side, meter in meters.items()
    ]
    return sides, named


def _calls(work: str, partitions: int) -> tuple[int, str]:
    """How many there were, and which for each partition."""
    calls = CountedClient.calls.total()
    names = ", ".join(f"{name} {count / partitions:.1f}" for name, count in CountedClient.calls.most_common())
    return calls, f"{work}: {calls / partitions:.1f} metastore calls each: {names}"


def _clean(server: MetastoreServer, partitions: int, say: Say) -> tuple[Measured, str]:
    """Clean what was compacted, as the cleaner's task does it."""
    work = f"cleaning, {partitions:,} small partitions"
    say(work)
    entities = [Entity(_DATABASE, f"t{partitions}", name) for name in partition_names(partitions)]
    meter = Meter(this_process)

    @contextmanager
    def connect() -> Iterator[tuple[AcidMetastoreClient, CompactionQueue]]:
        with CountedClient([MetastoreAddress(server.host, server.port)]) as client:
            yield client, open_queue(client)

    CountedClient.calls.clear()
    with meter.running(), connect() as (client, queue):
        cleanings = Cleaner(client, queue, CompactionSettings(), connect=connect).clean(entities)
    wrong = [cleaning for cleaning in cleanings if cleaning.state is not CleaningState.CLEANED]
    if wrong or len(cleanings) != partitions:
        raise RuntimeError(f"{len(wrong)} of {len(cleanings)}: {wrong[:1]}")
    calls, named = _calls(work, partitions)
    return Measured(work, "project", tuple(meter.costs), calls), named


def partition_names(partitions: int) -> list[str]:
    """Of a table with so many."""
    return [f"p={number:06d}" for number in range(partitions)]


def make_small_partitions(server: MetastoreServer, folder: Path, table: str, partitions: int) -> list[Entity]:
    """A table of small partitions, all of them due.

    :param folder: where :func:`measure_small_chain` has been at work.
    """
    names = partition_names(partitions)
    with ThriftAdmin(server.host, server.port) as admin:
        place = admin.create_table(TableDefinition(_DATABASE, table, COLUMNS, {"p": "string"}))
        for start in range(0, partitions, PARTITIONS_PER_CALL):
            admin.add_partitions(_DATABASE, table, names[start : start + PARTITIONS_PER_CALL])
        transactions = admin.open_transactions(SMALL.write_ids)
        admin.allocate_write_ids(_DATABASE, table, transactions)
        for transaction in transactions:
            admin.commit(transaction)
    for name in names:
        shutil.copytree(folder / "model", place / name, dirs_exist_ok=True)
    return [Entity(_DATABASE, table, name) for name in names]


def compact_as_operator(
    connect: Callable[[], AcidMetastoreClient],
    folder: Path,
    entities: Sequence[Entity],
    be_the_application: Callable[[RunDirectory], object],
    *,
    max_active: int,
    max_small: int = 0,
) -> tuple[Outcome, ...]:
    """Compact partitions in one batch, as an operator does.

    :param connect: opens a metastore connection.
    :param folder: has the directory of the runs.
    :param be_the_application: carries out a run, and returns when that has ended.
    """
    settings = CompactionSettings(run_directory=str(folder / "runs"))
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
