"""The installed DAGs with ``airflow dags test``: real metastore, real Spark, real Airflow with its database."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.publish.staging import STAGING_PREFIX
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.values import CompactionState
from tests.harness import the_hive_4
from tests.harness.acid_reader import as_hive_prints, read_table
from tests.harness.airflow_commands import ROOT, AirflowCommands
from tests.harness.compaction_chain import Chain, run_until_killed
from tests.harness.current_rows import comparable, snapshot_now
from tests.harness.every_case import some_of
from tests.harness.hive_tables import FixtureTable, register
from tests.harness.metastore_server import MetastoreServer
from tests.harness.thrift_admin import ThriftAdmin
from tests.integration.airflow_runs import DATABASE, Airflow
from tests.integration.compaction_site import ON_BOTH_METASTORES, Site

ON_SOME_METASTORES = pytest.mark.parametrize("site", some_of([the_hive_4.NAME, "hive_3"], 0), indirect=True)
"""Each run of a DAG takes a quarter of a minute; the housekeeping's is on Hive 3 in every run of the tests."""


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowCommands]:
    with AirflowCommands(tmp_path_factory.mktemp("airflow"), ROOT / "dags") as started:
        yield started


@pytest.fixture(scope="module")
def airflow(commands: AirflowCommands, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """With a metastore of its own: what other tests leave open would hold the cleaning back."""
    with MetastoreServer(tmp_path_factory.mktemp("metastore"), reaper=False) as server:
        yield Airflow(commands, server)


def rows(airflow: Airflow, table: FixtureTable) -> list[str]:
    with ThriftAdmin(airflow.metastore.host, airflow.metastore.port) as admin:
        snapshot = snapshot_now(admin, table.database, table.name)
    definition = table.fixture.definition
    found = read_table(table.location, definition.columns, snapshot, partition_keys=list(definition.partition_keys))
    return comparable(as_hive_prints(row) for row in found)


def directories(folder: Path) -> list[str]:
    return sorted(child.name for child in folder.iterdir() if child.is_dir())


def test_the_command_line_knows_the_providers_section(airflow: Airflow) -> None:
    exit_code, said = airflow.call("config", "get-value", "hive_acid", "delta_num_threshold")
    assert (exit_code, said.splitlines()[-1]) == (0, "10"), said


def test_a_run_without_anything_due_is_a_success(airflow: Airflow) -> None:
    run = airflow.run(tables=["nowhere.*"], fail_on_unmatched_patterns=False)
    assert (run.exit_code, run.state) == (0, "success"), run.output
    assert run.states["find_due_partitions"] == {"skipped": 1}
    assert run.states["compact"] == {"skipped": 1}


def test_a_pattern_without_a_table_fails_the_run(airflow: Airflow) -> None:
    run = airflow.run(tables=["nowhere.*"])
    assert run.state == "failed", run.output
    assert "table pattern 'nowhere.*' matches no table" in run.output


def test_a_run_finds_compacts_and_cleans(airflow: Airflow) -> None:
    plain, parted = (register(airflow.metastore, name, "4.0.1", DATABASE) for name in ("acid_plain", "acid_part"))
    before = {table.name: rows(airflow, table) for table in (plain, parted)}

    run = airflow.run()

    assert (run.exit_code, run.state) == (0, "success"), run.output
    assert {task: dict(states) for task, states in run.states.items()} == {
        "find_due_partitions": {"success": 1},
        "compact": {"success": 1},
        "clean": {"success": 1},
        "done": {"success": 1},
    }
    entities = {"demo.acid_plain", *(f"demo.acid_part/{name}" for name in parted.partitions)}
    assert airflow.queue() == dict.fromkeys(entities, "succeeded")
    assert {table.name: rows(airflow, table) for table in (plain, parted)} == before
    for folder in (plain.location, *(parted.location / name for name in parted.partitions)):
        assert [name.partition("_")[0] for name in directories(folder)] == ["base"], folder


def test_a_batch_that_fails_fails_the_run_and_keeps_no_other_from_being_cleaned(airflow: Airflow) -> None:
    good = register(airflow.metastore, "acid_merge", "4.0.1", DATABASE)
    broken = register(airflow.metastore, "acid_buck", "4.0.1", DATABASE)
    before = rows(airflow, good)
    victim = max(broken.location.rglob("bucket_*"))
    victim.write_bytes(victim.read_bytes()[:-20])
    fingerprint = {path: path.read_bytes() for path in broken.location.rglob("*") if path.is_file()}

    run = airflow.run(batch_partitions=1)

    assert (run.exit_code, run.state) == (1, "failed"), run.output
    assert run.states["compact"] == {"success": 1, "failed": 1}
    assert run.states["clean"] == {"success": 2}
    assert run.states["done"] == {"upstream_failed": 1}
    queue = airflow.queue()
    assert (queue["demo.acid_merge"], queue["demo.acid_buck"]) == ("succeeded", "failed")
    assert rows(airflow, good) == before
    assert [name.partition("_")[0] for name in directories(good.location)] == ["base"]
    assert {path: path.read_bytes() for path in broken.location.rglob("*") if path.is_file()} == fingerprint


@pytest.fixture(scope="module")
def by_hand(airflow: Airflow) -> FixtureTable:
    """Three partitions: two with five deltas, inserts and deletes, and one with two of inserts; four are allowed."""
    allowed = {"compactorthreshold.hive.compactor.delta.num.threshold": "4"}
    table = register(airflow.metastore, "acid_part", "4.0.1", "by_hand")
    with ThriftAdmin(airflow.metastore.host, airflow.metastore.port) as admin:
        admin.set_table_properties(table.database, table.name, allowed)
    return table


def everything(airflow: Airflow, table: FixtureTable) -> object:
    """Every file with its time, the queue, and all transactions and locks: what a change would change."""
    files = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in table.location.rglob("*")}
    with AcidMetastoreClient([MetastoreAddress(airflow.metastore.host, airflow.metastore.port)]) as client:
        partitions = [Entity(table.database, table.name, name) for name in table.partitions]
        locks = [lock for entity in partitions for lock in client.show_locks(entity)]
        return files, client.compactions(), client.open_transactions(), locks


def kinds(table: FixtureTable) -> dict[str, list[str]]:
    """By partition, what is in it."""
    folders = {name: directories(table.location / name) for name in table.partitions}
    return {name: [directory.partition("_0")[0] for directory in found] for name, found in folders.items()}


SKIPPED = {"compact": {"skipped": 1}, "clean": {"skipped": 1}, "done": {"success": 1}}
BIG = ["delete_delta", "delete_delta", "delta", "delta", "delta"]


@pytest.mark.parametrize(
    ("dag_id", "conf", "first"),
    [
        ("acid_compaction", {"tables": ["by_hand.*"], "max_partitions": 1}, "find_due_partitions"),
        ("acid_compact_table", {"database": "by_hand", "table": "acid_part"}, "plan"),
    ],
)
def test_a_dry_run_prints_the_decisions_and_changes_nothing(
    airflow: Airflow, by_hand: FixtureTable, dag_id: str, conf: dict[str, object], first: str
) -> None:
    before = everything(airflow, by_hand)

    run = airflow.run_dag(dag_id, {**conf, "decide_only": True})

    assert (run.exit_code, run.state) == (0, "success"), run.output
    assert {task: dict(states) for task, states in run.states.items()} == {first: {"skipped": 1}, **SKIPPED}
    assert "3 partitions looked at: 2 due" in run.output
    for shown in (r"by_hand\.acid_part/p=x/q=1 +major +3 +2 ", r"by_hand\.acid_part/p=z/q=3 +- +2 +0 "):
        assert re.search(shown, run.output), run.output
    assert ("left to the next run (budget): major: 5 deltas > 4" in run.output) == (dag_id == "acid_compaction")
    assert everything(airflow, by_hand) == before


def test_a_run_does_what_the_options_say(airflow: Airflow, by_hand: FixtureTable) -> None:
    run = airflow.run_dag(
        "acid_compaction",
        {"decide_only": True},
        tables="by_hand.acid_*, slaes.*",
        exclude="by_hand.x*",
        fail_on_unmatched_patterns="False",
        max_partitions="1",
    )
    assert (run.exit_code, run.state) == (0, "success"), run.output
    assert "3 partitions looked at: 2 due" in run.output
    assert "1 of those due are left to the next run (budget)" in run.output
    for warning in ("table pattern 'slaes.*' matches no table", "excluded pattern 'by_hand.x*' leaves out no table"):
        assert warning in run.output


SWEEP = """
from airflow_provider_acid.installed_dags import acid_compaction_dag

acid_compaction_dag("other_sweep", tables=["by_hand.*"], schedule="@daily")
acid_compaction_dag(
    "sweep_web",
    tables=["web.*"],
    schedule="@daily",
    delta_num_threshold=1,
    spark={"executor_memory": "600m", "conf": {"spark.ui.showConsoleProgress": "false", "spark.x": "1.10"}},
    default_args={"pool": "default_pool"},
)
"""


def test_a_sweep_works_to_its_end_with_the_spark_that_site_dag_file_and_form_name(
    airflow: Airflow, by_hand: FixtureTable, tmp_path: Path
) -> None:
    (tmp_path / "sweeps.py").write_text(SWEEP)
    table = register(airflow.metastore, "acid_plain", "4.0.1", "web")
    before, untouched = rows(airflow, table), kinds(by_hand)

    with AirflowCommands(airflow.commands.home, tmp_path) as commands:
        sweeps = Airflow(commands, airflow.metastore)
        run = sweeps.run_dag(
            "sweep_web",
            {"driver_memory": "700m"},
            tables="nowhere.*",
            executor_memory="900m",
            spark_conf='{"spark.x": "of the site", "spark.y": "of the site"}',
        )

    assert (run.exit_code, run.state) == (0, "success"), run.output
    assert all(dict(states) == {"success": 1} for states in run.states.values()), run.states
    (command,) = {*re.findall(r"Spark-Submit cmd: (.*)", sweeps.log.read_text())}  # Airflow 2 logs it twice
    for told in ("--executor-memory 600m ", "--driver-memory 700m ", "spark.x=1.10 ", "spark.y=of the site "):
        assert told in command
    assert [name.partition("_")[0] for name in directories(table.location)] == ["base"]
    assert rows(airflow, table) == before
    assert kinds(by_hand) == untouched


def test_a_misspelt_key_of_the_conf_fails_the_run_without_another_try(airflow: Airflow) -> None:
    run = airflow.run_dag("acid_compaction", {"table": ["by_hand.*"]}, task_retries="2")
    assert (run.exit_code, run.state) == (1, "failed"), run.output
    assert run.states["find_due_partitions"] == {"failed": 1}
    assert "'table': no parameter of the DAG has that name. Remedy: write 'tables' for 'table'." in run.output


def test_a_property_of_spark_in_the_conf_fails_the_run_before_spark_is_started(
    airflow: Airflow, by_hand: FixtureTable
) -> None:
    code = {"spark.driver.extraJavaOptions": "-javaagent:x.jar"}
    asked = {"database": by_hand.database, "table": by_hand.name, "type": "major", "spark_conf": code}
    run = airflow.run_dag("acid_compact_table", asked)
    assert (run.exit_code, run.state) == (1, "failed"), run.output
    assert run.states["plan"] == {"failed": 1}
    assert "'spark_conf': no parameter of the DAG has that name" in run.output
    assert "Spark-Submit cmd" not in airflow.log.read_text()


def test_some_partitions_or_all_of_a_table_are_compacted_by_hand(airflow: Airflow, by_hand: FixtureTable) -> None:
    before = rows(airflow, by_hand)
    untouched = {"p=x/q=1": BIG, "p=y/q=2": BIG, "p=z/q=3": ["delta", "delta"]}
    assert kinds(by_hand) == untouched
    steps: list[tuple[dict[str, object], dict[str, list[str]]]] = [
        (
            {"partition": "p=z/q=3\np=y/q=2", "type": "minor"},
            {"p=z/q=3": ["delta"], "p=y/q=2": ["delete_delta", "delta"]},
        ),
        ({"partition": "p=y/q=2", "type": "major"}, {"p=y/q=2": ["base"]}),
        ({"partition": None, "type": "auto"}, {"p=x/q=1": ["base"]}),
    ]
    for asked, changed in steps:
        untouched |= changed
        run = airflow.run_dag("acid_compact_table", {"database": "by_hand", "table": "acid_part", **asked})
        assert (run.exit_code, run.state) == (0, "success"), run.output
        assert all(dict(states) == {"success": 1} for states in run.states.values()), run.states
        assert kinds(by_hand) == untouched, asked
        assert rows(airflow, by_hand) == before, asked


def test_a_partition_that_does_not_exist_fails_the_run_and_says_how_to_spell_it(
    airflow: Airflow, by_hand: FixtureTable
) -> None:
    before = everything(airflow, by_hand)
    run = airflow.run_dag(
        "acid_compact_table", {"database": "by_hand", "table": "acid_part", "partition": "P=x/Q=1", "type": "major"}
    )
    assert (run.exit_code, run.state) == (1, "failed")
    assert run.states["plan"] == {"failed": 1}
    assert "partition P=x/Q=1 of table by_hand.acid_part: does not exist. Remedy: spell it exactly as" in run.output
    assert everything(airflow, by_hand) == before


@pytest.fixture
def airflow_of_site(site: Site, commands: AirflowCommands) -> Airflow:
    return Airflow(commands, site.server)


@ON_SOME_METASTORES
def test_a_table_is_compacted_by_hand_as_minor_and_as_major(airflow_of_site: Airflow, site: Site) -> None:
    table = site.table("by_hand")
    table.insert(1)
    for value, kind, left in ((2, "minor", "delta"), (3, "major", "base")):
        table.insert(value)
        run = airflow_of_site.run_dag(
            "acid_compact_table", {"database": site.database, "table": "by_hand", "type": kind}
        )
        assert (run.exit_code, run.state) == (0, "success"), run.output
        (directory,) = table.directories()
        assert directory.partition("_")[0] == left, run.output
        assert table.values() == list(range(1, value + 1))
    assert [row.state for row in site.rows(table.entity())] == [CompactionState.SUCCEEDED] * 2


@ON_SOME_METASTORES
def test_the_doctor_looks_and_its_failure_is_its_report(airflow_of_site: Airflow, site: Site) -> None:
    site.table("looked_at").insert(1)
    run = airflow_of_site.run_dag("acid_doctor", {"tables": [f"{site.database}.*"]})
    assert (run.exit_code, run.state) == (0, "success"), run.output
    assert "1 partitions looked at" in run.output
    assert "spark-submit" in run.output
    odd = site.admin.table_location(site.database, "looked_at") / "delta_odd"
    odd.mkdir()
    run = airflow_of_site.run_dag("acid_doctor", {"tables": [f"{site.database}.*"]})
    assert run.state == "failed", run.output
    assert "The doctor found 1 problem" in run.output
    assert "tables that cannot be compacted: " in run.output


@ON_BOTH_METASTORES
def test_housekeeping_cleans_what_was_forgotten_and_removes_what_is_nobodys(
    airflow_of_site: Airflow, site: Site
) -> None:
    table = site.table("forgotten")
    for value in (1, 2, 3):
        table.insert(value)
    run_until_killed(Chain.on(site.server, table.entity(), settings=site.settings), "staging_removed")
    orphan = table.folder() / f"{STAGING_PREFIX}0123456789abcdef"
    orphan.mkdir()

    run = airflow_of_site.run_dag(
        "acid_housekeeping",
        {"tables": [f"{site.database}.*"], "forgotten_after_seconds": 0, "cleaning_deadline_seconds": 0},
    )

    assert (run.exit_code, run.state) == (0, "success"), run.output
    assert {task: dict(states) for task, states in run.states.items()} == {
        "keep_house": {"success": 1},
        "clean_forgotten": {"success": 1},
    }
    (row,) = site.rows(table.entity())
    assert row.state is CompactionState.SUCCEEDED, run.output
    (base,) = table.directories()
    assert base.startswith("base_")
    assert table.values() == [1, 2, 3]
