"""Tables that Hive wrote hold the rows and ROW__IDs that Hive read, before, while and after they are compacted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_4
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.metastore.hive4.queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.values import CompactionState
from tests.harness import the_hive_4
from tests.harness.acid_reader import as_hive_prints, read_table
from tests.harness.airflow_connections import connections_to
from tests.harness.current_rows import comparable, snapshot_now
from tests.harness.hive_tables import FixtureTable, register
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import ThriftAdmin
from tests.integration.compaction_site import Site, StepRecorder

TABLES = {
    "3.1.3": [
        "a_plain",
        "a_buck",
        "a_part",
        "a_part_buck",
        "a_multi",
        "a_merge",
        "a_abort",
        "a_evol",
        "a_over",
        "a_stream",
        "a_types",
    ],
    "4.0.1": [
        "acid_plain",
        "acid_buck",
        "acid_part",
        "acid_partbuck",
        "acid_multi",
        "acid_merge",
        "acid_abort",
        "acid_evol",
        "acid_over",
        "acid_types",
        "merge_src",
    ],
}
ALL = [(version, name) for version, names in TABLES.items() for name in names]
SPARK_SECONDS = 240

_OPERATOR = """
import json, sys
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
partitions = json.loads(sys.argv[1])
operator = AcidCompactionOperator(
    task_id="compact", partitions=partitions, rewrite_single_delta=True, conf={"spark.ui.enabled": "false"}
)
print("OUTCOMES", json.dumps(operator.execute({})), flush=True)
"""


def read_now(admin: ThriftAdmin, table: FixtureTable, *, check_visibility: bool = True) -> list[str]:
    definition = table.fixture.definition
    snapshot = snapshot_now(admin, table.database, table.name, check_visibility=check_visibility)
    rows = read_table(table.location, definition.columns, snapshot, partition_keys=definition.partition_keys)
    return comparable(as_hive_prints(row) for row in rows)


def entities(table: FixtureTable) -> list[Entity]:
    return [Entity(table.database, table.name, partition) for partition in table.partitions or (None,)]


def folder(table: FixtureTable, entity: Entity) -> Path:
    return table.location / (entity.partition or "")


def directories(path: Path) -> list[str]:
    return sorted(child.name for child in path.iterdir())


@pytest.mark.parametrize(("version", "name"), ALL)
def test_readers_see_hives_rows_at_every_step(site: Site, version: str, name: str) -> None:
    table = register(site.server, name, version, site.database)
    expected = comparable(table.rows)

    def read_both_ways(step: Step) -> None:
        assert read_now(site.admin, table) == expected, step
        assert read_now(site.admin, table, check_visibility=False) == expected, step

    site.settings = CompactionSettings(rewrite_single_delta=True)
    for entity in entities(table):
        recorder = StepRecorder(read_both_ways)
        outcome = site.compact(entity, on_step=recorder)
        assert outcome.state is OutcomeState.COMPACTED, outcome
        [cleaning] = site.clean(entity, on_step=recorder)
        assert cleaning.state is CleaningState.CLEANED, cleaning
        assert directories(folder(table, entity)) == [outcome.targets[0]]
        assert site.row(outcome.request_id).state is CompactionState.SUCCEEDED
        assert {Step.PUBLISHED, Step.COMMITTED, Step.FILES_DELETED, Step.MARKED_CLEANED} <= set(recorder.steps)
    assert read_now(site.admin, table) == expected
    assert not [path for path in table.location.rglob("_acid_compaction*")]


@pytest.fixture(scope="session")
def spark_run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[FixtureTable], dict[Entity, dict[str, object]]]:
    """Every table, compacted by one operator with one spark-submit; what it returned, by partition."""
    metastore: MetastoreServer = request.getfixturevalue(f"{the_hive_4.NAME}_metastore")
    tables = [register(metastore, name, version, f"spark{version[0]}") for version, name in ALL]
    with ThriftAdmin(metastore.host, metastore.port) as admin:
        for table in tables:
            assert read_now(admin, table) == comparable(table.rows), f"{table.name} before"
    partitions = [
        {"database": entity.database, "table": entity.table, "partition": entity.partition}
        for table in tables
        for entity in entities(table)
    ]
    home = tmp_path_factory.mktemp("airflow")
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": "",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        **connections_to(metastore),
    }
    done = subprocess.run(
        [sys.executable, "-c", _OPERATOR, json.dumps(partitions)],
        env=environment,
        cwd=home,
        text=True,
        capture_output=True,
        timeout=SPARK_SECONDS,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("OUTCOMES "))
    outcomes: list[dict[str, object]] = json.loads(line.removeprefix("OUTCOMES "))
    by_entity = {
        Entity(
            str(item["database"]), str(item["table"]), None if item["partition"] is None else str(item["partition"])
        ): item
        for item in outcomes
    }
    return tables, by_entity


def test_the_operator_with_a_real_spark_compacts_every_table_exactly(
    site: Site, spark_run: tuple[list[FixtureTable], dict[Entity, dict[str, object]]]
) -> None:
    tables, outcomes = spark_run
    assert {str(entity): item["state"] for entity, item in outcomes.items()} == {
        str(entity): "compacted" for table in tables for entity in entities(table)
    }
    for table in tables:
        for check_visibility in (True, False):
            found = read_now(site.admin, table, check_visibility=check_visibility)
            assert found == comparable(table.rows), f"{table.name} after compaction"
    cleanings = site.clean(*outcomes)
    assert {str(item.entity): item.state.value for item in cleanings} == {str(entity): "cleaned" for entity in outcomes}
    for table in tables:
        for check_visibility in (True, False):
            found = read_now(site.admin, table, check_visibility=check_visibility)
            assert found == comparable(table.rows), f"{table.name} after cleaning"
        for entity in entities(table):
            assert directories(folder(table, entity)) == outcomes[entity]["targets"]
        top = {entity.partition.partition("/")[0] for entity in entities(table) if entity.partition}
        assert not top or set(directories(table.location)) == top, "the run directory is gone"


def test_show_compactions_says_succeeded_for_each_partition(
    site: Site, spark_run: tuple[list[FixtureTable], dict[Entity, dict[str, object]]]
) -> None:
    _, outcomes = spark_run
    addresses = [MetastoreAddress(site.server.host, site.server.port)]
    with AcidMetastoreClient(addresses) as client:
        rows = {row.entity: row for row in ThriftCompactionQueue(client, HIVE_4).rows()}
    assert {str(entity): rows[entity].state.value for entity in outcomes} == {
        str(entity): "succeeded" for entity in outcomes
    }
    applications = {rows[entity].job_id for entity in outcomes}
    assert len(applications) == 1, "one application merged them all"
    assert str(applications.pop()).startswith("local-")
