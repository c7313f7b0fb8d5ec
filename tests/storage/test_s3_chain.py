"""The whole way of a table on a real S3 server: compacted, published, read after every request, cleaned; killed."""

from __future__ import annotations

import json
import logging
import secrets
import signal
import traceback
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.exceptions import AcidError
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.storages.s3.options import S3Options
from tests.harness.airflow_connections import connections_to
from tests.harness.compaction_chain import MERGED, Chain, run_until_killed
from tests.harness.metastore_server import MetastoreServer
from tests.harness.ports import free_port
from tests.harness.s3_server import S3Server
from tests.storage.airflow_tasks import run_tasks
from tests.storage.canaries import RUN_KEY, CanaryWatch
from tests.storage.remote_tables import RemotePlace
from tests.storage.s3_tables import (
    SEVERAL_FILES,
    KeyedStorages,
    Readers,
    after_each_change,
    chain_of,
    end_it,
    place_on,
    table_on,
)
from tests.unit.test_documentation import blocks_of, section_of

DEAD_AFTER_SECONDS = 1.5
MAJOR, MINOR = CompactionType.MAJOR, CompactionType.MINOR
CASES = [
    *((fixture, type) for fixture in (("4.0.1", "acid_merge"), ("4.0.1", "acid_buck")) for type in (MAJOR, MINOR)),
    (("4.0.1", "acid_over"), MAJOR),
    (("4.0.1", "mm_part"), MAJOR),
    (("4.0.1", "mm_plain"), MINOR),
]
STEPS = [
    *(Step.STAGED.value, MERGED),
    *(step.value for step in (Step.FENCED, Step.JOURNALLED, Step.PUBLISHED, Step.CLEANING_DECIDED)),
]


@pytest.fixture
def server(hive_4_metastore_on_postgres: MetastoreServer) -> MetastoreServer:
    """A metastore of Hive 4, where the commit publishes."""
    return hive_4_metastore_on_postgres


@pytest.fixture
def place(s3: S3Server) -> RemotePlace:
    """A bucket for a warehouse."""
    return place_on(s3)


def stopping(chain: Chain, after_copies: int, how: signal.Signals) -> Chain:
    """One whose process signals itself between two copies."""
    storages = chain.settings.storages
    assert isinstance(storages, KeyedStorages)
    storages = replace(storages, after_copies=after_copies, how=how)
    return replace(chain, settings=replace(chain.settings, storages=storages))


@pytest.mark.parametrize(("fixture", "type"), CASES, ids=[f"{fixture[1]}-{type.value}" for fixture, type in CASES])
def test_readers_see_hives_rows_after_every_request(
    server: MetastoreServer, place: RemotePlace, tmp_path: Path, fixture: tuple[str, str], type: CompactionType
) -> None:
    table = table_on(server, place, tmp_path, fixture)
    assert table.read() == table.read(check_visibility=False) == table.expected
    readers, beside_cleaner = Readers(table), Readers(table)
    for entity in table.entities:
        chain = chain_of(table, entity, type)
        with after_each_change(readers.look):
            compacted = chain.compact()
        with after_each_change(beside_cleaner.look):
            cleanings = chain.clean()
        assert compacted.outcome.state is OutcomeState.COMPACTED, compacted
        assert [cleaning.state for cleaning in cleanings] == [CleaningState.CLEANED], cleanings
        assert table.names(entity) == sorted(compacted.outcome.targets)
    assert readers.wrong == beside_cleaner.wrong == []
    assert readers.looks > 10
    assert beside_cleaner.kept_away > 0
    assert (readers.kept_away > 0) == (fixture == SEVERAL_FILES or len(compacted.outcome.targets) > 1)
    assert table.read() == table.expected


@pytest.mark.parametrize("step", STEPS)
def test_whoever_comes_after_one_that_was_killed_ends_what_it_began(
    server: MetastoreServer, place: RemotePlace, tmp_path: Path, step: str
) -> None:
    table = table_on(server, place, tmp_path)
    [entity] = table.entities
    chain = chain_of(table, entity).with_timeout(DEAD_AFTER_SECONDS)
    run_until_killed(chain, step)
    assert table.read() == table.read(check_visibility=False) == table.expected
    end_it(table, chain)


@pytest.mark.parametrize("type", [MAJOR, MINOR], ids=["major", "minor"])
@pytest.mark.parametrize("copies", [1, 2])
def test_a_part_that_one_left_who_was_killed_between_two_copies_goes_before_its_lock_does(
    server: MetastoreServer, place: RemotePlace, tmp_path: Path, copies: int, type: CompactionType
) -> None:
    table = table_on(server, place, tmp_path, SEVERAL_FILES)
    [entity] = table.entities
    chain = chain_of(table, entity, type).with_timeout(DEAD_AFTER_SECONDS)
    run_until_killed(stopping(chain, copies, signal.SIGKILL), "between copies")
    assert table.read() == table.expected
    if copies == 1:
        # The first goes alone; of the others more than one may have arrived.
        assert table.read(check_visibility=False) != table.expected
    readers = Readers(table)
    with after_each_change(readers.look):
        assert chain.next_try().compact().outcome.state is OutcomeState.COMPACTED
    assert readers.wrong == []
    assert readers.kept_away > 0
    end_it(table, chain, ends={OutcomeState.SKIPPED, OutcomeState.NOTHING_TO_MERGE})


@pytest.mark.needs_minio
def test_sensor_operator_spark_and_cleaner_work_on_s3_alone(
    server: MetastoreServer, s3: S3Server, place: RemotePlace, tmp_path: Path
) -> None:
    """Airflow's processes have their key from a connection, Spark's from the environment: another one.

    Both may do just what docs/rights.md says. Rows are written in slices. No secret of either is in a command
    line, a file, an object or a log.
    """
    table = table_on(server, place, tmp_path / "table", ("4.0.1", "acid_part"))
    bucket = place.uri.split("/")[2]
    [policy] = [block.code for block in blocks_of("docs/rights.md", section_of("docs/rights.md", "S3"))]
    assert policy.count(":::warehouse") == 2
    policy = policy.replace(":::warehouse", f":::{bucket}")
    of_airflow, of_spark = s3.temporary_key(policy), s3.temporary_key(policy)
    database = json.loads(connections_to(server)["AIRFLOW_CONN_METASTORE_DB"])
    canaries = {
        "secret key of the connection": of_airflow.secret_key,
        "session token of the connection": of_airflow.session_token or "",
        "secret key of the environment": of_spark.secret_key,
        "session token of the environment": of_spark.session_token or "",
        "password of the metastore's database": secrets.token_hex(16),
        "what else is in the environment": secrets.token_hex(16),
    }
    token = {"aws_session_token": of_airflow.session_token}
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {
        "AIRFLOW__HIVE_ACID__SLICE_BYTES": "1",
        "AIRFLOW__HIVE_ACID__HEALTH_LOCATION": f"{place.uri}/health",
        "AWS_ACCESS_KEY_ID": of_spark.access_key,
        "AWS_SECRET_ACCESS_KEY": of_spark.secret_key,
        "AWS_SESSION_TOKEN": of_spark.session_token or "",
        "AIRFLOW_CONN_MINIO": json.dumps(
            {"conn_type": "aws", "login": of_airflow.access_key, "password": of_airflow.secret_key, "extra": token}
        ),
        # This PostgreSQL lets everybody in, whatever the password.
        "AIRFLOW_CONN_METASTORE_DB": json.dumps(
            {**database, "password": canaries["password of the metastore's database"]}
        ),
        "SOME_SERVICE_TOKEN": canaries["what else is in the environment"],
        "TMPDIR": str(temporary),
    }
    options = {"s3": {**place.storages.of(S3Options).to_json(), "connection_id": "minio"}}
    name = f"{table.table.database}.acid_part"
    with CanaryWatch(canaries, tmp_path, s3.client(), bucket) as watch:
        compacted, cleaned = run_tasks(server, name, options, environment, tmp_path / "airflow")
    assert {item["state"] for item in compacted} == {"compacted"}
    assert {item["state"] for item in cleaned} == {"cleaned"}
    assert len(cleaned) == len(compacted) == len(table.entities)
    assert table.read() == table.read(check_visibility=False) == table.expected
    for entity in table.entities:
        assert [name[:5] for name in table.names(entity)] == ["base_"]
    assert not place.storages.open(table.table.uri).exists("_acid_runs")
    [(canary, key_file)] = watch.found
    assert canary == RUN_KEY
    assert watch.modes[key_file] == 0o600
    for left in (".plan.json", ".result.json", "/tasks.log", "/health/", "SparkSubmit", "--run-directory"):
        assert [seen for seen in watch.seen if left in seen], left


@pytest.mark.needs_minio
def test_what_fails_is_told_without_the_secrets_that_were_tried(
    server: MetastoreServer,
    s3: S3Server,
    place: RemotePlace,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    canaries = [secrets.token_hex(16) for _ in range(4)]
    caplog.set_level(logging.DEBUG)
    options = {"s3": {**place.storages.of(S3Options).to_json(), "connection_id": "minio"}}
    connections = connections_to(server, storage=options)
    wrong: dict[str, dict[str, object]] = {
        "MINIO": {"conn_type": "aws", "login": "nobody", "extra": {"aws_session_token": canaries[3]}},
        "METASTORE_DB": {**json.loads(connections["AIRFLOW_CONN_METASTORE_DB"]), "port": free_port()},
        "HIVE_ACID_DEFAULT": {**json.loads(connections["AIRFLOW_CONN_HIVE_ACID_DEFAULT"]), "login": "somebody"},
    }
    for (name, connection), password in zip(wrong.items(), canaries, strict=False):
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", json.dumps({**connection, "password": password}))
    endpoint = AcidMetastoreHook().endpoint()
    assert endpoint.database_url is not None
    database = MetastoreDatabase(endpoint.database_url, patience_seconds=1)
    told = [repr(endpoint)]
    for ask, about in (
        (lambda: endpoint.storages.open(place.uri).list(), "check the access key"),
        (lambda: database.table("COMPACTION_QUEUE"), "the metastore's database"),
        (lambda: endpoint.open().probe(), "take login"),
    ):
        with pytest.raises(AcidError, match=about) as refused:
            ask()
        told += traceback.format_exception(refused.value)
    text = "".join([*told, caplog.text])
    assert [canary for canary in canaries if canary in text] == []
