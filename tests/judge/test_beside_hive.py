"""A real Hive beside us: its own Initiator and Cleaner run, and its SHOW COMPACTIONS tells what we do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyarrow import orc

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import DuePartition, OutcomeState
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.metastore.queues import open_queue
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionPlan, CompactionType
from airflow_provider_acid.plan.result import CompactionResult
from tests.harness.compaction_chain import wait_until
from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import HIVE_3, HIVE_4, HIVE_4_1, HIVE_4_2, hive_4_metastore_program
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_server import MetastoreServer
from tests.harness.postgres_server import PostgresServer
from tests.harness.the_hive_4 import THE_HIVE_4
from tests.integration.compaction_site import Site, fingerprint
from tests.judge.compactors import compactor_for
from tests.judge.readings import check_every_way, read

DATABASE = "beside"
LEFT_TO_US = "'no_auto_compaction'='true'"
DUE_FOR_HIVE = "'compactorthreshold.hive.compactor.delta.num.threshold'='2'"
ENGINES = {
    HIVE_3: "hive_3_engine",
    HIVE_4: "hive_4_with_threads",
    HIVE_4_1: "hive_4_1_engine",
    HIVE_4_2: "hive_4_2_engine",
}
WHILE_IT_WAITS = {version: "working" if version == HIVE_3 else "ready for cleaning" for version in ENGINES}
REFUSED = {version: "attempted" if version == HIVE_3 else "refused" for version in ENGINES}
NOT_OURS = {
    HIVE_3: (),
    HIVE_4: ("rebalance",),
    HIVE_4_1: ("rebalance", "smart_optimize"),
    HIVE_4_2: ("rebalance", "smart_optimize"),
}
"""Types of requests that users may make and this release does not do."""

EXPECTED = {
    Step.ENQUEUED: "initiated",
    Step.CLAIMED: "working",
    Step.STAGED: "working",
    Step.PUBLISHED: "working",
}


@dataclass(frozen=True)
class Beside:
    """A Hive with its own Initiator and Cleaner, and this package on the same metastore."""

    hive: HiveEngine
    site: Site

    def make(self, table: str, properties: str) -> None:
        """A partitioned table, written by SQL: three inserts, an update and a delete in p=a, two inserts in p=b."""
        name = f"{DATABASE}.{table}"
        self.hive.execute(
            f"create table {name} (id int, s string) partitioned by (p string) stored as orc "
            f"tblproperties ('transactional'='true', {properties})",
            *(f"insert into {name} partition(p) values ({n}, 'a{n}', 'a'), ({n + 10}, 'b', 'a')" for n in (1, 2, 3)),
            *(f"insert into {name} partition(p) values ({n}, 'b{n}', 'b')" for n in (4, 5)),
            f"update {name} set s = 'u' where id in (2, 13)",
            f"delete from {name} where id = 11",
        )

    def rows(self, table: str) -> list[str]:
        return read(self.hive, f"{DATABASE}.{table}", "row__id, *")

    def shown(self, entity: Entity) -> list[str]:
        """The states of an entity's requests in SHOW COMPACTIONS, by id."""
        return [line[5] for line in self.lines(entity)]

    def lines(self, entity: Entity) -> list[list[str]]:
        """Those of SHOW COMPACTIONS that are about an entity, by id."""
        lines = [line.split("\t") for line in self.hive.execute("show compactions")]
        wanted = [entity.database, entity.table, entity.partition]
        return sorted((line for line in lines if line[1:4] == wanted), key=lambda line: int(line[0]))

    def ask(self, entity: Entity, type: str, overwritten: str = "") -> None:
        """As a user does, with properties for this request alone."""
        key, _, value = str(entity.partition).partition("=")
        properties = f" with overwrite tblproperties ({overwritten})" if overwritten else ""
        self.hive.execute(
            f"alter table {entity.full_table_name} partition({key}='{value}') compact '{type}'{properties}"
        )

    def folder(self, entity: Entity) -> Path:
        return self.site.admin.table_location(entity.database, entity.table) / (entity.partition or "")

    def directories(self, entity: Entity) -> list[str]:
        return sorted(path.name for path in self.folder(entity).iterdir() if path.is_dir())

    def let_hives_cleaner_look(self) -> None:
        """Wait until Hive's Cleaner has dealt with a row that only it takes: one of a table that is gone."""
        query = self.site.server.server_database.query
        asked = self.site.client.compact(Entity(DATABASE, "gone", "p=1"), CompactionType.MAJOR).id
        if self.hive.version == HIVE_3:
            query(f"UPDATE COMPACTION_QUEUE SET cq_state = 'r', cq_highest_write_id = 1 WHERE cq_id = {asked}")
            rows = f"SELECT cq_id FROM COMPACTION_QUEUE WHERE cq_id = {asked}"
        else:
            query(
                'UPDATE "COMPACTION_QUEUE" SET "CQ_STATE" = \'r\', "CQ_HIGHEST_WRITE_ID" = 1, "CQ_NEXT_TXN_ID" = 1, '
                f'"CQ_COMMIT_TIME" = 1 WHERE "CQ_ID" = {asked}'
            )
            rows = f'SELECT "CQ_ID" FROM "COMPACTION_QUEUE" WHERE "CQ_ID" = {asked}'
        wait_until(lambda: query(rows) == [])


def due(entity: Entity, request_id: int | None = None) -> DuePartition:
    return DuePartition(entity, CompactionType.MAJOR, "beside Hive", request_id)


@pytest.fixture(scope="module")
def hive_4_with_threads(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[HiveEngine]:
    """Hive 4.0.1 whose own Initiator and Cleaner are on, as they are on Hive 3.1.3 anyway."""
    folder = tmp_path_factory.mktemp("beside")
    metastore = MetastoreServer.with_its_threads(
        folder / "metastore", hive_4_metastore_program(), ServerDatabase(postgres, "hive_4_beside")
    )
    with metastore, HiveEngine(HIVE_4, folder, metastore) as hive:
        yield hive


@pytest.fixture(
    params=[
        pytest.param(version, id=f"hive_{version}", marks=pytest.mark.xdist_group(version))
        for version in sorted({HIVE_3, HIVE_4, THE_HIVE_4})
    ]
)
def beside(request: pytest.FixtureRequest) -> Iterator[Beside]:
    hive: HiveEngine = request.getfixturevalue(ENGINES[request.param])
    hive.execute(f"create database if not exists {DATABASE}")
    with compactor_for(hive, DATABASE) as compactor:
        yield Beside(hive, compactor.site)
        compactor.site.close()


def test_show_compactions_tells_at_every_step_what_we_do(beside: Beside) -> None:
    """While a reader of ours holds its snapshot nothing is deleted, by whichever Cleaner."""
    hive, site = beside.hive, beside.site
    beside.make("ours", LEFT_TO_US)
    entity = Entity(DATABASE, "ours", "p=a")
    written = beside.rows("ours")
    # Without an aborted one Hive 4.2's Cleaner stumbles over its own list of transactions while one is open.
    (aborted,) = site.admin.open_transactions()
    site.admin.lock_as_writer(aborted, DATABASE, "ours", "p=b")
    site.admin.abort(aborted)
    (reader,) = site.admin.open_transactions()
    site.open_txns.add(reader)
    site.admin.lock_as_reader(reader, DATABASE, "ours", "p=a")
    lines: dict[Step, list[list[str]]] = {}

    outcome = site.compact(due(entity), on_step=lambda step, _: lines.update({step: beside.lines(entity)}))

    assert outcome.state is OutcomeState.COMPACTED, outcome
    shown = {step: [line[5] for line in lines[step]] for step in lines}
    ((host, worker),) = (line[6:8] for line in lines[Step.STAGED])
    # Hive 3 shows the id as it is.
    shown_id = host if beside.hive.version == HIVE_3 else f"{host}-{worker}"
    assert re.fullmatch("airflow@here-acid:[0-9a-f]{12}:[0-9a-z]{16}", shown_id)
    assert beside.hive.version == HIVE_3 or host == "airflow@here"
    assert {step: shown[step] for step in EXPECTED} == {step: [state] for step, state in EXPECTED.items()}
    waiting = WHILE_IT_WAITS[hive.version]
    assert [shown[step] for step in (Step.MARKED_COMPACTED, Step.STAGING_REMOVED)] == [[waiting], [waiting]]
    kept = fingerprint(beside.folder(entity))
    beside.let_hives_cleaner_look()
    assert [cleaning.state for cleaning in site.clean(entity)] == [CleaningState.WAITING]
    assert fingerprint(beside.folder(entity)) == kept
    assert beside.shown(entity) == [waiting]
    check_every_way(hive, f"{DATABASE}.ours", "row__id, *", written, "while the reader reads")

    site.end(reader, site.admin.commit)
    assert [cleaning.state for cleaning in site.clean(entity)] == [CleaningState.CLEANED]
    assert beside.shown(entity) == ["succeeded"]
    assert beside.directories(entity) == list(outcome.targets)
    check_every_way(hive, f"{DATABASE}.ours", "row__id, *", written, "after the cleaning")


def test_hives_own_cleaner_never_takes_a_row_of_ours(beside: Beside) -> None:
    """However long that waits, and though nobody reads."""
    beside.make("left_behind", LEFT_TO_US)
    entity = Entity(DATABASE, "left_behind", "p=b")
    written = beside.rows("left_behind")
    outcome = beside.site.compact(due(entity))
    assert outcome.state is OutcomeState.COMPACTED, outcome
    beside.let_hives_cleaner_look()
    assert beside.shown(entity) == [WHILE_IT_WAITS[beside.hive.version]]
    assert len(beside.directories(entity)) > 1
    assert [cleaning.state for cleaning in beside.site.clean(entity)] == [CleaningState.CLEANED]
    assert beside.shown(entity) == ["succeeded"]
    assert beside.directories(entity) == list(outcome.targets)
    check_every_way(beside.hive, f"{DATABASE}.left_behind", "row__id, *", written, "after the cleaning")


@pytest.mark.parametrize("beside", [pytest.param(HIVE_4, marks=pytest.mark.xdist_group(HIVE_4))], indirect=True)
def test_without_the_database_hives_own_cleaner_may_clean_after_us(beside: Beside) -> None:
    """Where it waits for all readers that have a transaction."""
    beside.site.hive_database = None
    beside.make("left_behind_more", LEFT_TO_US)
    entity = Entity(DATABASE, "left_behind_more", "p=b")
    written = beside.rows("left_behind_more")
    outcome = beside.site.compact(due(entity))
    assert outcome.state is OutcomeState.COMPACTED, outcome
    wait_until(lambda: beside.shown(entity) == ["succeeded"])
    assert beside.site.clean(entity) == ()
    assert beside.site.row(outcome.request_id).state is CompactionState.SUCCEEDED
    assert beside.directories(entity) == list(outcome.targets)
    check_every_way(beside.hive, f"{DATABASE}.left_behind_more", "row__id, *", written, "after the cleaning")


@pytest.mark.parametrize("beside", [pytest.param(HIVE_4_2, marks=pytest.mark.xdist_group(HIVE_4_2))], indirect=True)
def test_without_the_database_a_cleaner_that_waits_for_registered_readers_only_is_refused(beside: Beside) -> None:
    """With both settings as Hive 4.2 has them by default."""
    with pytest.raises(ConfigurationError, match="cleaner.on: is true .*minhistorywriteid: .*metastore_db_conn_id"):
        open_queue(beside.site.client)


def test_show_compactions_tells_of_failures_and_refusals(beside: Beside) -> None:
    beside.make("unlucky", LEFT_TO_US)
    entity = Entity(DATABASE, "unlucky", "p=a")
    written = beside.rows("unlucky")

    def fail(plan: CompactionPlan) -> CompactionResult:
        return CompactionResult(plan.attempt, plan.digest, plan.entity, "disk full", (), 0.0)

    assert beside.site.compact(due(entity), job=fail).state is OutcomeState.FAILED
    assert beside.shown(entity) == ["failed"]
    beside.hive.execute(f"alter table {DATABASE}.unlucky set tblproperties ('no_cleanup'='true')")
    assert beside.site.compact(due(entity)).state is OutcomeState.REFUSED
    assert beside.shown(entity) == ["failed", REFUSED[beside.hive.version]]
    check_every_way(beside.hive, f"{DATABASE}.unlucky", "row__id, *", written, "after a failure and a refusal")


def test_a_request_of_hives_initiator_is_served_or_reported_if_so_wished(beside: Beside) -> None:
    site = beside.site
    site.settings = replace(site.settings, serve_foreign_requests=False)
    beside.make("theirs", DUE_FOR_HIVE)
    entity = Entity(DATABASE, "theirs", "p=a")
    written = beside.rows("theirs")
    wait_until(lambda: beside.shown(entity) == ["initiated"])
    found = site.evaluate(f"{DATABASE}.theirs")
    assert [row.entity for row in found.foreign] == [entity]
    assert entity not in {item.entity for item in found.due}

    site.settings = replace(site.settings, serve_foreign_requests=True)
    (request,) = [item for item in site.evaluate(f"{DATABASE}.theirs").due if item.request_id is not None]
    outcome = site.compact(request)
    assert (outcome.state, outcome.entity, outcome.request_id) == (OutcomeState.COMPACTED, entity, request.request_id)
    assert [cleaning.state for cleaning in site.clean(entity)] == [CleaningState.CLEANED]
    assert beside.shown(entity) == ["succeeded"]
    check_every_way(beside.hive, f"{DATABASE}.theirs", "row__id, *", written, "after Hive's request")


def test_what_a_user_overwrites_holds_for_that_request_alone(beside: Beside) -> None:
    """``orc.compress`` by ``tblprops.``; ``compactor.`` is for a job of Hive's own."""
    site = beside.site
    entities = {wanted: Entity(DATABASE, f"overwritten_{wanted}", "p=a") for wanted in ("snappy", "zlib", "lz77")}
    for wanted, entity in entities.items():
        beside.make(entity.table, LEFT_TO_US)
        properties = f"'tblprops.orc.compress'='{wanted}', 'compactor.mapreduce.map.memory.mb'='512'"
        beside.ask(entity, "major", properties if wanted != "zlib" else "")
    written = {entity: beside.rows(entity.table) for entity in entities.values()}
    requested = site.evaluate(f"{DATABASE}.overwritten_*").due
    found = {item.entity: site.compact(item) for item in requested}
    *done, refused = (found[entity] for entity in entities.values())
    assert [outcome.state for outcome in done] == [OutcomeState.COMPACTED] * 2, done
    assert "orc.compress=lz77" in refused.message, refused
    for wanted, outcome in zip(entities, done, strict=False):
        folder = site.admin.table_location(DATABASE, outcome.entity.table) / "p=a" / outcome.targets[0]
        assert {compression_of(file) for file in folder.glob("bucket_*")} == {wanted.upper()}
    for entity, rows in written.items():
        check_every_way(beside.hive, entity.full_table_name, "row__id, *", rows, f"after {found[entity]}")


def compression_of(file: Path) -> str:
    compression: str = orc.ORCFile(file).compression
    return compression


def test_of_what_users_ask_for_only_what_is_ours_to_do_is_claimed(beside: Beside) -> None:
    """Behind requests that nobody does."""
    site, types = beside.site, (*NOT_OURS[beside.hive.version], "major", "minor")
    entities = {type: Entity(DATABASE, f"asked_{type}", "p=a") for type in types}
    for entity in entities.values():
        beside.make(entity.table, LEFT_TO_US)
    written = {type: beside.rows(entity.table) for type, entity in entities.items()}
    for type, entity in entities.items():
        beside.ask(entity, type)

    found = site.evaluate(f"{DATABASE}.asked_*")
    assert [(left.entity, left.type) for left in found.foreign] == [
        (entities[type], type) for type in NOT_OURS[beside.hive.version]
    ]
    assert all("which this release does not do" in left.reason for left in found.foreign)
    requested = [item for item in found.due if item.request_id is not None]
    assert [(item.entity, item.type.value) for item in requested] == [
        (entities[type], type) for type in ("major", "minor")
    ]
    assert [site.compact(item).state for item in requested] == [OutcomeState.COMPACTED] * 2
    waiting = WHILE_IT_WAITS[beside.hive.version]
    shown = {type: beside.shown(entity) for type, entity in entities.items()}
    assert shown == {type: ["initiated" if type in NOT_OURS[beside.hive.version] else waiting] for type in types}
    assert [cleaning.state for item in requested for cleaning in site.clean(item.entity)] == [CleaningState.CLEANED] * 2
    for type, entity in entities.items():
        check_every_way(beside.hive, entity.full_table_name, "row__id, *", written[type], f"after {type} was asked for")
