"""What an evaluation costs with a real metastore, beside fetching the partitions and listing them; and how it grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.compaction.evaluate.initiator import Initiator
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.filesystem import Storage, Storages
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.database.written import WriteRecords
from airflow_provider_acid.metastore.queues import open_queue
from airflow_provider_acid.metastore.thrift.catalog import PARTITIONS_PER_CALL
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.storages.local import LocalStorage
from benchmarks.counted_client import CountedClient
from benchmarks.evaluation import DELTAS
from benchmarks.measured import Findings, Measured, ratio
from benchmarks.metering import Meter, this_process
from benchmarks.rounds import Rounds, Say
from tests.harness.hive_engine_program import hive_4_metastore_program
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_server import MetastoreServer
from tests.harness.postgres_server import PostgresServer
from tests.harness.thrift_admin import TableDefinition, ThriftAdmin
from tests.unit.compaction.evaluated_tables import EvaluatedTables, FakeStorages, deltas

_DATABASE, _TABLE = "evaluated", "t"
_PARTITIONS_PER_RECORDED = 100
"""Of so many partitions one has writes on record."""


class _CountedStorage(LocalStorage):
    listings = 0

    def list(self, path: str = "", into: Callable[[str], bool] | None = None) -> Listing:
        _CountedStorage.listings += 1
        return super().list(path, into)


@dataclass(frozen=True)
class _CountedStorages(Storages):
    def open(self, location: str) -> Storage:
        return _CountedStorage(location)


def measure_evaluation(server: MetastoreServer, partitions: int, rounds: Rounds, say: Say) -> Findings:
    """Partitions of three deltas of a byte each, all on the local disk.

    :param server: a Hive 4 metastore whose database can be asked.
    """
    say(f"evaluation: making {partitions:,} partitions")
    _make_table(server, partitions)
    address = MetastoreAddress(server.host, server.port)
    writes = WriteRecords(MetastoreDatabase(server.server_database.url))
    recorded = CompactionSettings(candidates=Candidates.WRITTEN)
    evaluations = {
        "evaluation": _Evaluation(CompactionSettings(), None, partitions),
        "evaluation, written": _Evaluation(recorded, writes, -(-partitions // _PARTITIONS_PER_RECORDED)),
    }
    say("evaluation: counting calls")
    calls = {side: _count_calls(address, evaluation) for side, evaluation in evaluations.items()}
    meters, alone = {side: Meter(this_process) for side in evaluations}, Meter(this_process)
    for round_name in rounds.names():
        say(f"evaluation: {round_name}")
        for side, evaluation in evaluations.items():
            with AcidMetastoreClient([address]) as client, meters[side].running():
                evaluation.run(client, Storages())
        with AcidMetastoreClient([address]) as client, alone.running():
            _fetch_and_list(client, partitions)
    name = f"{partitions:,} partitions"
    evaluated, written = (Measured(name, side, rounds.counted(meters[side]), *calls[side]) for side in evaluations)
    listed = Measured(name, "fetching + listing", rounds.counted(alone))
    return Findings((evaluated, written, listed), (ratio("evaluate_vs_listing", evaluated, listed),))


@dataclass(frozen=True)
class _Evaluation:
    """What a poke of the sensor does.

    :param looked_at: partitions that it has to look at.
    """

    settings: CompactionSettings
    writes: WriteRecords | None
    looked_at: int

    def run(self, client: AcidMetastoreClient, storages: Storages) -> None:
        settings = replace(self.settings, storages=storages)
        initiator = Initiator(client, open_queue(client), settings, self.writes)
        evaluation = initiator.evaluate(TableSelection.of([f"{_DATABASE}.{_TABLE}"]))
        assert len(evaluation.evaluated) == self.looked_at, evaluation.skipped[:3]


def _count_calls(address: MetastoreAddress, evaluation: _Evaluation) -> tuple[int, int]:
    """Metastore calls and listings of an evaluation; in one of its own, for counting takes time."""
    CountedClient.calls.clear()
    _CountedStorage.listings = 0
    with CountedClient([address]) as client:
        evaluation.run(client, _CountedStorages())
    return CountedClient.calls.total(), _CountedStorage.listings


def measure_simulated_evaluation(partitions: int, rounds: int, say: Say) -> Findings:
    """The same without servers and files, for the cost of Python alone."""
    meter = Meter(this_process)
    inserts = deltas(3)
    for number in range(rounds):
        say(f"evaluation, simulated: round {number + 1}")
        site = EvaluatedTables({"t": partitions}, FakeStorages(listing=lambda location: inserts))
        with meter.running():
            assert len(site.evaluate(threads=1).evaluated) == partitions
    name = f"{partitions:,} partitions, simulated"
    return Findings((Measured(name, "evaluation", tuple(meter.costs), len(site.client.calls), partitions),))


def _fetch_and_list(client: AcidMetastoreClient, partitions: int) -> None:
    """What no evaluation can do without, one after the other."""
    names = client.get_partition_names(_DATABASE, _TABLE)
    batches = (names[start : start + PARTITIONS_PER_CALL] for start in range(0, len(names), PARTITIONS_PER_CALL))
    places = [found.location for batch in batches for found in client.get_partitions(_DATABASE, _TABLE, batch)]
    storages = Storages()
    assert sum(len(storages.open(place).list().directories) for place in places) == len(DELTAS) * partitions


@contextmanager
def hive_4_metastore(folder: Path) -> Iterator[MetastoreServer]:
    """Hive 4's metastore on PostgreSQL, ended with the block.

    :param folder: of everything that belongs to it.
    """
    with PostgresServer() as postgres:
        database = ServerDatabase(postgres, "evaluation")
        program = hive_4_metastore_program()
        with MetastoreServer(folder, reaper=False, program=program, database=database) as server:
            yield server


def _make_table(server: MetastoreServer, partitions: int) -> None:
    names = [f"p={number:06d}" for number in range(partitions)]
    with ThriftAdmin(server.host, server.port) as admin:
        admin.create_database(_DATABASE)
        place = admin.create_table(TableDefinition(_DATABASE, _TABLE, {"a": "int", "b": "string"}, {"p": "string"}))
        for start in range(0, partitions, PARTITIONS_PER_CALL):
            admin.add_partitions(_DATABASE, _TABLE, names[start : start + PARTITIONS_PER_CALL])
        transactions = admin.open_transactions(len(DELTAS))
        write_ids = admin.allocate_write_ids(_DATABASE, _TABLE, transactions)
        for transaction in transactions:
            admin.add_dynamic_partitions(
                transaction, write_ids[transaction], _DATABASE, _TABLE, names[::_PARTITIONS_PER_RECORDED]
            )
        for transaction in transactions:
            admin.commit(transaction)
    for name in names:
        for delta in DELTAS:
            directory = place / name / delta
            directory.mkdir(parents=True)
            (directory / "bucket_00000").write_bytes(b"x")
