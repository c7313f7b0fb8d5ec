"""An HDFS with two NameNodes, of which the active one dies or steps back in mid-compaction or mid-cleaning."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.metastore.thrift.transport import PlainTransportFactory
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.storages.hdfs import webhdfs_calls
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.hdfs.webhdfs import WebHdfsStorage
from airflow_provider_acid.storages.hdfs.webhdfs_session import Answer, NoAnswerError, WebHdfsSession
from tests.harness.compaction_chain import Chain
from tests.harness.every_case import some_of
from tests.harness.ha_hdfs import NAMESERVICE, HaHdfs
from tests.harness.hdfs_metastore import metastore_on_hdfs, warehouse
from tests.harness.hive_engine_program import hive_4_metastore_program
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_server import MetastoreServer, Protection
from tests.harness.postgres_server import PostgresServer
from tests.storage.remote_tables import RemotePlace, RemoteTable

STEPS = (Step.STAGED, Step.VERIFIED, Step.FENCED, Step.PUBLISHED, Step.COMMITTED)
STEPS_OF_CLEANING = (Step.CLEANING_DECIDED, Step.FILES_DELETED)
CASES = some_of([(step, dies) for step in (*STEPS, *STEPS_OF_CLEANING) for dies in (True, False)], 2, 7, 10)
FAIL_OVER_SECONDS = 5
"""Longer than a NameNode is waited for that nobody will replace."""

_NUMBERS = count()


@pytest.fixture(scope="module")
def shared_hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HaHdfs]:
    """The servers, for all tests here."""
    with HaHdfs(tmp_path_factory.mktemp("ha-hdfs")) as hdfs:
        yield hdfs


@pytest.fixture
def hdfs(shared_hdfs: HaHdfs) -> HaHdfs:
    """The same with both NameNodes."""
    shared_hdfs.restore()
    return shared_hdfs


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, shared_hdfs: HaHdfs, postgres: PostgresServer
) -> Iterator[MetastoreServer]:
    """Hive 4.0.1, its tables below the nameservice."""
    protection = Protection({}, PlainTransportFactory(), hadoop_settings=shared_hdfs.metastore_settings)
    program, database = hive_4_metastore_program(), ServerDatabase(postgres, "ha_hdfs")
    with metastore_on_hdfs(
        *(shared_hdfs, tmp_path_factory.mktemp("metastore"), program, database), reaper=False, protection=protection
    ) as server:
        yield server


@pytest.fixture
def place(hdfs: HaHdfs) -> RemotePlace:
    """A warehouse on it."""
    options = HdfsOptions(hdfs.web_addresses, (NAMESERVICE,), hdfs.superuser, timeout_seconds=20)
    return RemotePlace(Storages((options,)), warehouse(hdfs))


@pytest.fixture
def table(server: MetastoreServer, place: RemotePlace, tmp_path: Path) -> RemoteTable:
    """A fixture in a database of its own."""
    table = RemoteTable.of(server, place, tmp_path / "table", ("4.0.1", "acid_merge"), f"ha_{next(_NUMBERS)}")
    assert table.table.uri.startswith(f"hdfs://{NAMESERVICE}/")
    return table


def chain_of(table: RemoteTable) -> Chain:
    """Compaction and cleaning of the only partition."""
    settings = CompactionSettings(storages=table.place.storages)
    return Chain.on(table.server, table.entities[0], settings=settings, type=CompactionType.MAJOR)


def once_at(step: Step, do: Callable[[], None]) -> Callable[[Step, Entity], None]:
    """Does something after a step, the first time."""
    left = [do]

    def on_step(passed: Step, _: Entity) -> None:
        if passed is step and left:
            left.pop()()

    return on_step


def check_clean(table: RemoteTable) -> None:
    """Nothing but the result is left, and no row has changed."""
    [base] = table.names(table.entities[0])
    assert base.startswith("base_")
    assert table.read() == table.read(check_visibility=False) == table.expected


@pytest.mark.parametrize(
    ("step", "dies"), CASES, ids=[f"{step.value}-{'dies' if dies else 'steps back'}" for step, dies in CASES]
)
def test_the_other_namenode_goes_on_in_the_same_try(hdfs: HaHdfs, table: RemoteTable, step: Step, dies: bool) -> None:
    before = hdfs.active

    def fail_over() -> None:
        if dies:
            hdfs.kill_active()
        hdfs.fail_over()
        assert table.read() == table.expected

    chain = chain_of(table)
    compacted = chain.compact(once_at(step, fail_over)).outcome
    assert compacted.state is OutcomeState.COMPACTED, compacted
    [cleaning] = chain.clean(once_at(step, fail_over))
    assert cleaning.state is CleaningState.CLEANED, cleaning
    assert hdfs.active != before
    check_clean(table)


@pytest.mark.parametrize("was_sent", [True, False], ids=["after it was noted", "before it was heard"])
def test_a_publication_whose_namenode_dies_is_found_out_at_the_other(
    hdfs: HaHdfs, table: RemoteTable, monkeypatch: pytest.MonkeyPatch, was_sent: bool
) -> None:
    """The rename is in the journal that both share, or it is not."""
    real, deaths = WebHdfsSession.call, list[str]()

    def call(session: WebHdfsSession, method: str, path: str, parameters: Mapping[str, str]) -> Answer:
        is_publication = "/base_" in parameters.get("destination", "")
        if not is_publication or deaths:
            return real(session, method, path, parameters)
        deaths.append(path)
        if was_sent:
            assert real(session, method, path, parameters).status == 200
        hdfs.kill_active()
        hdfs.fail_over()
        raise NoAnswerError("http://localhost", "the connection broke", "try again")

    monkeypatch.setattr(WebHdfsSession, "call", call)
    chain = chain_of(table)
    compacted = chain.compact().outcome
    assert compacted.state is OutcomeState.COMPACTED, compacted
    assert len(deaths) == 1
    assert {cleaning.state for cleaning in chain.clean()} == {CleaningState.CLEANED}
    check_clean(table)


def test_a_fail_over_that_takes_seconds_is_waited_for(hdfs: HaHdfs, table: RemoteTable) -> None:
    chain = chain_of(table)
    with ThreadPoolExecutor() as threads:

        def fail_over() -> None:
            time.sleep(FAIL_OVER_SECONDS)
            hdfs.fail_over()

        def die() -> None:
            hdfs.kill_active()
            failing_over.append(threads.submit(fail_over))

        failing_over: list[Future[None]] = []
        compacted = chain.compact(once_at(Step.FENCED, die)).outcome
        assert compacted.state is OutcomeState.COMPACTED, compacted
        [done] = failing_over
        done.result()
    assert {cleaning.state for cleaning in chain.clean()} == {CleaningState.CLEANED}
    check_clean(table)


def test_while_nobody_is_active_a_try_fails_by_name_and_the_next_one_ends_it(
    hdfs: HaHdfs, table: RemoteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhdfs_calls, "STANDBY_PAUSES_SECONDS", ())
    chain = chain_of(table)
    compacted = chain.compact(once_at(Step.FENCED, hdfs.kill_active)).outcome
    assert compacted.state is OutcomeState.FAILED, compacted
    assert f"hdfs://{NAMESERVICE}/" in compacted.message
    hdfs.fail_over()
    assert table.read() == table.expected
    assert chain.next_try().compact().outcome.state is OutcomeState.COMPACTED
    assert {cleaning.state for cleaning in chain.clean()} == {CleaningState.CLEANED}
    check_clean(table)


def test_where_nobody_becomes_active_it_is_said(
    hdfs: HaHdfs, place: RemotePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhdfs_calls, "STANDBY_PAUSES_SECONDS", (0.1,))
    hdfs.kill_active()
    with pytest.raises(StorageError, match=r"hdfs://ns1/warehouse.*(refuses connections|StandbyException).*Remedy"):
        WebHdfsStorage(place.uri, place.storages.of(HdfsOptions)).list()
    hdfs.fail_over()
