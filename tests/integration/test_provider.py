"""Hook, sensor, operators and trigger on a real metastore, without Airflow's database."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowException, TaskDeferred
from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocolFactory
from thrift.server.TServer import TThreadedServer
from thrift.transport.TSocket import TServerSocket
from thrift.transport.TTransport import TBufferedTransportFactory

from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor
from airflow_provider_acid.triggers.cleaner import CleaningTrigger
from tests.harness.airflow_connections import connections_to
from tests.harness.spark_submits import reap
from tests.harness.withdrawal import withdraw
from tests.integration.compaction_site import AcidTable, Site
from tests.integration.slow_spark import SlowSpark

# Airflow's hook leaves process and pipe to the garbage collector, which may come in any later test of this file.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _connections(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in connections_to(site.server, f"127.0.0.1:1,{site.server.host}:{site.server.port}").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[1]"}))


def due_table(site: Site, name: str = "t") -> AcidTable:
    table = site.table(name)
    for value in range(3):
        table.insert(value)
    return table


def partition(table: AcidTable) -> dict[str, object]:
    return {"database": table.site.database, "table": table.name, "partition": None}


# --- the connection


def test_the_connection_test_finds_a_metastore_behind_a_dead_first_host() -> None:
    is_good, message = AcidMetastoreHook().test_connection()
    assert is_good, message
    assert message.startswith("Hive metastore 4")


class _Hive3:
    """A metastore of which only the version is asked; hmsclient's stubs know no call of Hive 4."""

    def getVersion(self) -> str:  # noqa: N802 - Thrift's name
        return "3.1.3"


@pytest.fixture
def hive_3() -> Iterator[int]:
    listener = TServerSocket("127.0.0.1", 0)
    listener.listen()
    server = TThreadedServer(
        ThriftHiveMetastore.Processor(_Hive3()),
        listener,
        TBufferedTransportFactory(),
        TBinaryProtocolFactory(),
        daemon=True,
    )
    listener.listen = lambda: None
    threading.Thread(target=server.serve, daemon=True).start()
    yield listener.handle.getsockname()[1]
    listener.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # the server's end
def test_the_connection_test_says_that_hive_3_lacks_what_is_needed(
    hive_3: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = {"conn_type": "hive_acid", "host": "127.0.0.1", "port": hive_3}
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps(connection))
    is_good, message = AcidMetastoreHook().test_connection()
    assert not is_good
    assert message.startswith("metastore 3.1.3: keeps its compaction queue in its database alone")
    assert "Remedy: name a connection to that database as metastore_db_conn_id" in message


# --- the sensor


def sensor(site: Site, **parameters: Any) -> AcidCompactionSensor:
    return AcidCompactionSensor(task_id="s", **{"tables": f"{site.database}.*", "delta_num_threshold": 1, **parameters})


def test_the_sensor_returns_what_is_due_and_waits_when_it_is_done(site: Site) -> None:
    table = due_table(site)
    answer = sensor(site).poke({})
    assert answer.is_done
    assert answer.xcom_value is not None
    ((item,),) = answer.xcom_value
    assert {name: item[name] for name in ("database", "table", "partition")} == partition(table)
    assert not sensor(site, delta_num_threshold="3", delta_pct_threshold="1000").poke({}).is_done


def test_a_request_of_a_user_is_reported_or_handed_on(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(AcidCompactionSensor, "log", logging.getLogger("sensor"), raising=False)
    site.withdraw_requests()
    table = due_table(site)
    request = site.client.compact(table.entity(), CompactionType.MAJOR).id
    assert not sensor(site, serve_foreign_requests="False").poke({}).is_done
    assert f"request {request} for {table.entity()} (major) was made by somebody else" in caplog.text
    answer = sensor(site).poke({})
    assert answer.xcom_value is not None
    ((item,),) = answer.xcom_value
    assert item["request_id"] == request
    withdraw(site.client, [request])


# --- a task that is ended while Spark runs


@pytest.fixture
def slow_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowSpark]:
    spark = SlowSpark(tmp_path)
    monkeypatch.setenv("PATH", f"{spark.folder}{os.pathsep}{os.environ['PATH']}")
    yield spark
    gc.collect()


class TimeOut(BaseException):
    """Airflow's own time-out is no Exception."""


def kill_it(operator: AcidCompactionOperator) -> None:
    """What Airflow does when it gets SIGTERM."""
    operator.on_kill()


def time_out(operator: AcidCompactionOperator) -> None:
    raise TimeOut


@pytest.mark.parametrize(("strike", "error"), [(kill_it, AirflowException), (time_out, TimeOut)])
def test_a_task_that_is_ended_gives_everything_back(
    site: Site,
    slow_spark: SlowSpark,
    strike: Callable[[AcidCompactionOperator], None],
    error: type[BaseException],
) -> None:
    table = due_table(site)
    before = table.fingerprint()
    operator = AcidCompactionOperator(task_id="compact", partitions=[partition(table)])
    seen: dict[str, object] = {}

    def wait_and_strike() -> None:
        slow_spark.wait_until_started()
        seen["during"] = table.fingerprint()
        os.kill(os.getpid(), signal.SIGUSR1)

    former = signal.signal(signal.SIGUSR1, lambda *_: strike(operator))
    striker = threading.Thread(target=wait_and_strike)
    striker.start()
    try:
        with pytest.raises(error):
            operator.execute({})
    finally:
        striker.join()
        signal.signal(signal.SIGUSR1, former)
        reap(operator)

    assert seen["during"] != before, "there was nothing to give back"
    assert table.fingerprint() == before
    (row,) = site.rows(table.entity())
    assert row.state is CompactionState.FAILED
    assert row.error_message is not None
    assert "the task was stopped" in row.error_message
    assert site.client.show_locks(table.entity()) == []
    assert row.txn_id not in site.admin.transactions().open
    assert slow_spark.ends()


# --- waiting for readers


def test_the_cleaner_waits_in_the_triggerer_until_the_reader_is_gone(site: Site) -> None:
    table = due_table(site)
    reader = site.reader(table)
    outcome = site.compact(table.entity())
    assert outcome.state is OutcomeState.COMPACTED, outcome
    obsolete = table.directories()
    operator = AcidCleanerOperator(
        task_id="clean", partitions=[partition(table)], deferrable=True, poll_seconds=0.1, cleaning_deadline_seconds=600
    )
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute({})
    assert table.directories() == obsolete
    path, arguments = deferred.value.trigger.serialize()
    trigger = CleaningTrigger(**json.loads(json.dumps(arguments)))
    (waiting,) = trigger.look()
    assert waiting.startswith(f"{table.entity()} waits for transaction {reader} of ")

    async def wait_for_the_event() -> Any:
        waiter = asyncio.ensure_future(anext(trigger.run()))
        await asyncio.sleep(0)
        await asyncio.to_thread(end_reader)
        return (await waiter).payload

    def end_reader() -> None:
        site.end(reader, site.admin.commit)

    event = asyncio.run(wait_for_the_event())
    assert event == {"state": "ready", "message": "", "deadline": arguments["deadline"]}
    (done,) = operator.execute_complete({}, event, **(deferred.value.kwargs or {}))
    assert (done["state"], done["deleted"]) == ("cleaned", 3)
    assert [name.partition("_")[0] for name in table.directories()] == ["base"]
    assert table.values() == [0, 1, 2]
