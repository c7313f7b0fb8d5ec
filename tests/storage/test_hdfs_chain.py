"""The whole way of a table on a real HDFS: compacted, published, read at every step, cleaned; also where it dies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.housekeep.undo import Undo
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from tests.harness.compaction_chain import MERGED, Chain, run_until_killed
from tests.harness.hdfs_metastore import metastore_on_hdfs, warehouse
from tests.harness.hdfs_server import HdfsServer
from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import HIVE_3, HIVE_4, hive_4_metastore_program
from tests.harness.libhdfs import libhdfs_environment
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_program import MetastoreProgram
from tests.harness.metastore_server import MetastoreServer
from tests.harness.postgres_server import PostgresServer
from tests.harness.thrift_admin import ThriftAdmin
from tests.judge.readings import check_every_way, read
from tests.storage.airflow_tasks import run_tasks
from tests.storage.remote_tables import RemotePlace, RemoteTable

DEAD_AFTER_SECONDS = 1.5
MAJOR, MINOR = CompactionType.MAJOR, CompactionType.MINOR
CASES = [
    *((fixture, type) for fixture in (("4.0.1", "acid_part"), ("3.1.3", "a_types")) for type in (MAJOR, MINOR)),
    (("3.1.3", "a_conv_part"), MAJOR),
    (("4.0.1", "acid_merge"), MINOR),
    (("4.0.1", "mm_part"), MAJOR),
    (("3.1.3", "io_parquet"), MAJOR),
    (("4.0.1", "mm_plain"), MINOR),
]
STEPS = [Step.STAGED.value, MERGED, *(step.value for step in (Step.FENCED, Step.PUBLISHED, Step.CLEANING_DECIDED))]
_NUMBERS = count()


@pytest.fixture(scope="module", params=["hive_4", "hive_3"])
def server(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    hdfs: HdfsServer,
    postgres: PostgresServer,
    hive_3_program: MetastoreProgram,
) -> Iterator[MetastoreServer]:
    """A metastore of either version that makes its tables' directories on HDFS."""
    program = hive_3_program if request.param == "hive_3" else hive_4_metastore_program()

    folder = tmp_path_factory.mktemp("metastore")
    database = ServerDatabase(postgres, f"hdfs_{request.param}")
    with metastore_on_hdfs(hdfs, folder, program, database, reaper=request.param == "hive_3") as server:
        yield server


@pytest.fixture(scope="module")
def hive(server: MetastoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveEngine]:
    """Hive itself, of the metastore's version."""
    with ThriftAdmin(server.host, server.port) as admin:
        version = HIVE_3 if admin.is_hive_3 else HIVE_4
    with HiveEngine(version, tmp_path_factory.mktemp("hive"), server) as engine:
        yield engine


@pytest.fixture
def place(hdfs: HdfsServer) -> RemotePlace:
    """A warehouse on HDFS."""
    storages = Storages((HdfsOptions(web_addresses=(hdfs.web_address,), user=hdfs.superuser),))
    return RemotePlace(storages, warehouse(hdfs))


def table_on(
    server: MetastoreServer, place: RemotePlace, folder: Path, fixture: tuple[str, str] = ("4.0.1", "acid_merge")
) -> RemoteTable:
    """A fixture in a database of its own."""
    return RemoteTable.of(server, place, folder, fixture, f"hdfs_{next(_NUMBERS)}")


def chain_of(table: RemoteTable, entity: Entity, type: CompactionType = CompactionType.MAJOR) -> Chain:
    """Compaction and cleaning of a partition on the place's storages."""
    settings = CompactionSettings(storages=table.place.storages, rewrite_single_delta=True)
    return Chain.on(table.server, entity, settings=settings, type=type)


@pytest.mark.parametrize(("fixture", "type"), CASES, ids=[f"{fixture[1]}-{type.value}" for fixture, type in CASES])
def test_readers_see_hives_rows_at_every_step(
    server: MetastoreServer, place: RemotePlace, tmp_path: Path, fixture: tuple[str, str], type: CompactionType
) -> None:
    table = table_on(server, place, tmp_path, fixture)
    assert table.read() == table.expected

    def look(step: Step, entity: Entity) -> None:
        if step in (Step.PUBLISHED, Step.FILES_DELETED):
            assert table.read(check_visibility=False) == table.expected, step

    for entity in table.entities:
        chain = chain_of(table, entity, type)
        compacted = chain.compact(look)
        assert compacted.outcome.state is OutcomeState.COMPACTED, compacted
        [cleaning] = chain.clean(look)
        assert cleaning.state is CleaningState.CLEANED, cleaning
        assert table.names(entity) == sorted(compacted.outcome.targets)
        assert table.read() == table.expected


def test_what_is_taken_back_is_read_as_before(server: MetastoreServer, place: RemotePlace, tmp_path: Path) -> None:
    table = table_on(server, place, tmp_path, ("4.0.1", "acid_part"))
    entity = table.entities[0]
    before = table.names(entity)
    chain = chain_of(table, entity)
    settings = replace(chain.settings, keep_replaced_hours=48.0)
    [result] = replace(chain, settings=settings).compact().outcome.targets
    [kept] = replace(chain, settings=settings).clean()
    assert kept.state is CleaningState.KEPT
    with chain.client() as client:
        undone = Undo(client, chain.queue(client), settings).undo(entity)
    assert undone.removed == result
    assert table.names(entity) == before
    assert table.read() == table.read(check_visibility=False) == table.expected
    assert chain.compact().outcome.state is OutcomeState.COMPACTED
    assert [cleaning.state for cleaning in chain.clean()] == [CleaningState.CLEANED]
    assert table.read() == table.expected


@pytest.mark.parametrize("step", STEPS)
def test_whoever_comes_after_one_that_was_killed_ends_what_it_began(
    server: MetastoreServer, place: RemotePlace, tmp_path: Path, step: str
) -> None:
    table = table_on(server, place, tmp_path)
    [entity] = table.entities
    chain = chain_of(table, entity).with_timeout(DEAD_AFTER_SECONDS)
    run_until_killed(chain, step)
    assert table.read() == table.expected
    ends = {OutcomeState.COMPACTED, OutcomeState.SKIPPED, OutcomeState.NOTHING_TO_MERGE}
    assert chain.next_try().compact().outcome.state in ends
    assert table.read() == table.expected
    assert {cleaning.state for cleaning in chain.clean()} <= {CleaningState.CLEANED}
    [base] = table.names(entity)
    assert base.startswith("base_")
    assert table.read() == table.expected


@pytest.mark.parametrize("type", [MAJOR, MINOR], ids=["major", "minor"])
def test_hive_itself_reads_the_same_rows_from_hdfs(
    hive: HiveEngine, place: RemotePlace, tmp_path: Path, type: CompactionType
) -> None:
    fixture = ("3.1.3", "a_merge") if hive.version == HIVE_3 else ("4.0.1", "acid_merge")
    table = table_on(hive.metastore, place, tmp_path, fixture)
    before = read(hive, table.name, table.columns)
    assert len(before) == len(table.expected)
    for entity in table.entities:
        chain = chain_of(table, entity, type)
        assert chain.compact().outcome.state is OutcomeState.COMPACTED
        check_every_way(hive, table.name, table.columns, before, "compacted")
        assert {cleaning.state for cleaning in chain.clean()} == {CleaningState.CLEANED}
        check_every_way(hive, table.name, table.columns, before, "cleaned")


@pytest.mark.parametrize("client", ["webhdfs", "libhdfs"])
def test_sensor_operator_spark_and_cleaner_work_on_hdfs_alone(
    server: MetastoreServer, hdfs: HdfsServer, place: RemotePlace, tmp_path: Path, client: str
) -> None:
    """Rows are written in slices."""
    table = table_on(server, place, tmp_path / "table", ("4.0.1", "acid_part"))
    environment = {
        "AIRFLOW__HIVE_ACID__SLICE_BYTES": "1",
        **(libhdfs_environment(hdfs) if client == "libhdfs" else {}),
    }
    options = {"hdfs": {**place.storages.of(HdfsOptions).to_json(), "libhdfs": client == "libhdfs"}}
    name = f"{table.table.database}.acid_part"
    compacted, cleaned = run_tasks(server, name, options, environment, tmp_path / "airflow")
    assert {item["state"] for item in compacted} == {"compacted"}
    assert {item["state"] for item in cleaned} == {"cleaned"}
    assert len(cleaned) == len(compacted) == len(table.entities)
    assert table.read() == table.expected
    for entity in table.entities:
        assert [name[:5] for name in table.names(entity)] == ["base_"]
