"""The operator around the batch: what Spark is told, what becomes of its errors, and how it ends when it is killed."""

from __future__ import annotations

import json
import logging
import os
import re
import runpy
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.sealing import RunKey
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.settings import CompactionSettings, LockTimeoutAction
from airflow_provider_acid.compaction.work.batch import CompactionBatch
from airflow_provider_acid.exceptions import MetastoreUnavailableError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.hooks import connected_batch
from airflow_provider_acid.operators.batch_name import application_name
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.shipped_files import shipped_file
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.s3.options import S3Options
from tests.unit.provider.fake_spark import FakeSpark

# Airflow's hook leaves the pipe to spark-submit to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

PARTITION = {"database": "d", "table": "t", "partition": "p=1"}
RUN = "file:/warehouse/d.db/t/_acid_compaction_runs/run1"
KEY = RunKey.new("run1")
STORAGES = Storages((HdfsOptions(web_addresses=("namenode:9870",)),))
OK, FAILED, REFUSED = OutcomeState.COMPACTED, OutcomeState.FAILED, OutcomeState.REFUSED


class FakeBatch:
    """Does nothing, notes what it is told, and ends as it was set to."""

    states: Sequence[OutcomeState] = (OK,)
    needs_application = True
    made: list[FakeBatch] = []

    def __init__(
        self, items: Sequence[DuePartition], *_: object, max_active: int, max_small: int, **__: object
    ) -> None:
        self.items, self.max_active, self.max_small = items, max_active, max_small
        self.told: list[str] = []
        self.made.append(self)

    def wait_until_planned(self) -> SimpleNamespace | None:
        return SimpleNamespace(location=RUN, storages=STORAGES, key=KEY) if self.needs_application else None

    def join(self) -> tuple[Outcome, ...]:
        self.told.append("join")
        ends = zip(self.items, self.states, strict=True)
        return tuple(Outcome(item.entity, state, f"{state.value} because", 7) for item, state in ends)

    def wait(self, seconds: float) -> None:
        self.told.append("wait")

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in {"start", "stop", "application_ended"}:
            raise AttributeError(name)
        return lambda *why: self.told.append(" ".join((name, *map(str, filter(None, why)))))


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSpark:
    fake = FakeSpark(tmp_path)
    monkeypatch.setenv("PATH", f"{fake.folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", "host": "not.asked"}))
    monkeypatch.setattr(connected_batch, "CompactionBatch", FakeBatch)
    monkeypatch.setattr(FakeBatch, "made", [])
    return fake


def operator(**parameters: Any) -> AcidCompactionOperator:
    return AcidCompactionOperator(task_id="compact", **{"partitions": [PARTITION], **parameters})


def end_with(monkeypatch: pytest.MonkeyPatch, *states: OutcomeState) -> list[dict[str, object]]:
    """The partitions of a batch that ends so."""
    monkeypatch.setattr(FakeBatch, "states", states)
    return [{**PARTITION, "partition": f"p={number}"} for number, _ in enumerate(states, 1)]


def test_nothing_to_do_is_no_work(spark: FakeSpark) -> None:
    assert operator(partitions=[]).execute({}) == []
    assert (FakeBatch.made, spark.calls()) == ([], [])


def test_no_application_is_started_where_no_partition_needs_one(
    spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeBatch, "needs_application", False)
    assert len(operator().execute({})) == 1
    assert spark.calls() == []


def test_outcomes_are_small_and_plain(spark: FakeSpark) -> None:
    outcomes = operator().execute({})
    assert outcomes == [
        {
            "database": "d",
            "table": "t",
            "partition": "p=1",
            "state": "compacted",
            "message": "compacted because",
            "request_id": 7,
            "targets": [],
            "bytes_before": 0,
            "bytes_after": 0,
            "rows": 0,
            "seconds": None,
        }
    ]
    assert json.loads(json.dumps(outcomes)) == outcomes


@pytest.mark.parametrize(
    ("name", "value", "setting", "expected"),
    [
        ("max_num_delta", "7", "max_num_delta", 7),
        ("minor_publish_lock", "false", "minor_publish_lock", False),
        ("minor_lock_wait_seconds", "7.5", "minor_lock_wait_seconds", 7.5),
        ("minor_lock_timeout_action", "refuse", "minor_lock_timeout_action", LockTimeoutAction.REFUSE),
        ("readers_honour_visibility", "true", "readers_honour_visibility", True),
    ],
)
def test_how_minors_are_published_is_configured_and_may_be_set_for_one_task(
    spark: FakeSpark, monkeypatch: pytest.MonkeyPatch, name: str, value: str, setting: str, expected: object
) -> None:
    made: list[CompactionSettings] = []

    @contextmanager
    def open_worker(endpoint: object, settings: CompactionSettings, *others: object) -> Iterator[None]:
        made.append(settings)
        yield

    class OpeningBatch(FakeBatch):
        def __init__(self, items: Sequence[DuePartition], open_worker: Any, *others: object, **more: Any) -> None:
            super().__init__(items, **more)
            with open_worker():
                pass

    monkeypatch.setattr(connected_batch, "open_connected_worker", open_worker)
    monkeypatch.setattr(connected_batch, "CompactionBatch", OpeningBatch)
    operator(**{name: value}).execute({})
    operator().execute({})
    assert name in AcidCompactionOperator.template_fields
    assert [getattr(settings, setting) for settings in made] == [expected, getattr(CompactionSettings(), setting)]


def test_the_application_is_named_like_hives_jobs(spark: FakeSpark) -> None:
    operator(name="mine").execute({})
    assert spark.option("--name") == [f"{socket.gethostname()}-compactor-d.t.p=1"]
    assert application_name([Entity("d", "t")]) == f"{socket.gethostname()}-compactor-d.t"
    many = [Entity("d", "t", f"p={number}") for number in range(3)]
    assert application_name(many) == f"{socket.gethostname()}-compactor-d.t.p=0 and 2 more"
    assert application_name([Entity("d", "t", "p={{a}}")]) == f"{socket.gethostname()}-compactor-d.t.p=((a))"
    assert len(application_name([Entity("d", "t", "p=" + "x" * 300)])) == 200


def test_the_application_is_told_its_run_directory_and_its_storages_and_nothing_else(spark: FakeSpark) -> None:
    operator().execute({})
    (call,) = spark.calls()
    assert call[-6:-1:2] == ["--run-directory", "--key-file", "--storage-options"]
    assert told(call) == (RUN, STORAGES)
    assert call[-7].endswith("spark_jobs/compact.py")


@pytest.mark.parametrize(
    ("location", "storages"),
    [
        (RUN, Storages()),
        (RUN, STORAGES),
        (RUN, Storages((HdfsOptions(user="{{USER}}", web_addresses=("namenode:9870",)), S3Options(region="}}")))),
        (RUN, Storages((S3Options(region="<LOG_DIR> $HOME `id` \\ ' \" {{{ }}} é", ca_file="/a b/c%7D"),))),
        ("hdfs://ns1/a{{b}}}c/_acid_runs/1", Storages()),
        ("s3://bucket/p=a%2Fb/$x `y` ü/_acid_runs/1", Storages((S3Options(path_style=True),))),
    ],
)
def test_no_argument_has_what_yarn_replaces_and_the_application_reads_what_was_meant(
    spark: FakeSpark, monkeypatch: pytest.MonkeyPatch, location: str, storages: Storages
) -> None:
    monkeypatch.setattr(f"{__name__}.RUN", location)
    monkeypatch.setattr(f"{__name__}.STORAGES", storages)
    operator(partitions=[{**PARTITION, "partition": "p={{a}}}"}], yarn_queue="own", num_executors=1).execute({})
    (call,) = spark.calls()
    assert [part for part in call if "{{" in part or "}}" in part] == []
    assert told(call) == (location, storages)


def told(call: Sequence[str]) -> tuple[str, Storages]:
    """What the application makes of the arguments that spark-submit was given."""
    arguments = runpy.run_path(str(shipped_file("spark_jobs/compact.py")))["parse_arguments"](call[-6:])
    return arguments.run_directory, Storages.from_json(arguments.storage_options)


@pytest.mark.parametrize(("conf", "expected"), [(None, "1"), ({"spark.yarn.maxAppAttempts": "3"}, "3")])
def test_yarn_starts_an_application_that_ended_itself_again_only_where_the_task_says_so(
    spark: FakeSpark, conf: dict[str, str] | None, expected: str
) -> None:
    operator(conf=conf).execute({})
    (call,) = spark.calls()
    assert [part for part in call if "maxAppAttempts" in part] == [f"spark.yarn.maxAppAttempts={expected}"]


def test_no_secret_of_a_connection_reaches_the_command_line(spark: FakeSpark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_HIVE_ACID_DEFAULT",
        json.dumps(
            {
                "conn_type": "hive_acid",
                "host": "metastore.secret.example",
                "login": "secret",
                "password": "secret",
                "extra": {"user": "secret", "metastore_db_conn_id": "secret"},
            }
        ),
    )
    monkeypatch.setenv("AIRFLOW_CONN_SECRET", "postgres://secret:secret@secret.example/secret")
    operator().execute({})
    assert "secret" not in " ".join(spark.calls()[0])


def test_the_package_goes_along_with_the_users_files_again_in_every_try(spark: FakeSpark) -> None:
    again = operator(py_files="one.py,two.py")
    again.execute({})
    again.execute({})
    assert again.py_files == "one.py,two.py"
    first, second = (value.split(",") for value in spark.option("--py-files"))
    assert first[:2] == second[:2] == ["one.py", "two.py"]
    assert [len(first), len(second)] == [3, 3]
    assert first[2] != second[2]
    assert spark.archives() == [first[2], second[2]]


def test_a_site_that_has_the_package_installed_ships_nothing(spark: FakeSpark) -> None:
    operator(ship_package=False).execute({})
    assert "--py-files" not in spark.calls()[0]


def test_the_next_try_gets_its_own_run_directory(spark: FakeSpark, monkeypatch: pytest.MonkeyPatch) -> None:
    again = operator()
    again.execute({})
    monkeypatch.setattr(f"{__name__}.RUN", "file:/another")
    again.execute({})
    assert spark.option("--run-directory")[1] == "file:/another"


def test_the_job_queue_is_the_configured_one_unless_the_table_or_the_task_names_its_own(
    spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__JOB_QUEUE", "nightly")
    operator().execute({})
    operator(partitions=[{**PARTITION, "job_queue": "tables"}]).execute({})
    operator(partitions=[{**PARTITION, "job_queue": "tables"}], yarn_queue="own").execute({})
    assert spark.option("--queue") == ["nightly", "tables", "own"]


def test_partitions_of_two_queues_are_told_before_one_is_claimed(
    spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = end_with(monkeypatch, OK, OK)
    items = [{**first, "job_queue": "tables"}, second]
    with pytest.raises(AirflowFailException, match="different queues of the cluster \\(none, tables\\)"):
        operator(partitions=items).execute({})
    assert FakeBatch.made == []
    operator(partitions=items, yarn_queue="own").execute({})
    assert spark.option("--queue") == ["own"]


def test_a_queue_that_yarn_does_not_take_is_told_to_the_batch(
    spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.ends_with(1, "Failed to submit application_17_0001 to YARN : root.nightly is not a leaf queue")
    with pytest.raises(AirflowFailException):
        operator(partitions=end_with(monkeypatch, REFUSED), yarn_queue="nightly").execute({})
    told = "application_ended queue nightly of the cluster: YARN takes no application into it (root.nightly is not a "
    assert any(one.startswith(told) for one in FakeBatch.made[0].told)


@pytest.mark.parametrize("code", [1, 127])
def test_an_error_of_spark_is_only_a_warning_where_all_partitions_are_done(
    spark: FakeSpark, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    monkeypatch.setattr(AcidCompactionOperator, "log", logging.getLogger("operator"), raising=False)
    spark.ends_with(code)
    assert [outcome["state"] for outcome in operator().execute({})] == ["compacted"]
    assert "All partitions are done, yet the Spark application reported" in caplog.text
    assert f"Error code is: {code}" in caplog.text


def test_a_partition_that_failed_fails_the_task_and_names_sparks_error(
    spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.ends_with(3)
    items = end_with(monkeypatch, OK, FAILED, REFUSED)
    with pytest.raises(AirflowException) as failure:
        operator(partitions=items).execute({})
    assert not isinstance(failure.value, AirflowFailException)
    assert re.match(
        r"2 of 3 partitions failed: d\.t/p=2: failed because; d\.t/p=3: refused because \(.*code is: 3",
        str(failure.value),
    )


def test_what_was_refused_is_not_tried_again(spark: FakeSpark, monkeypatch: pytest.MonkeyPatch) -> None:
    items = end_with(monkeypatch, OK, REFUSED, REFUSED)
    with pytest.raises(
        AirflowFailException, match=r"^2 of 3 .*: d\.t/p=2: refused because; d\.t/p=3: refused because$"
    ):
        operator(partitions=items).execute({})


class TimeOut(BaseException):
    """Airflow's own time-out is no Exception."""


@pytest.mark.parametrize("troubles", [[], [FileNotFoundError("yarn")]], ids=["", "yarn is not installed"])
def test_a_time_out_stops_the_application_before_everything_is_given_back(
    spark: FakeSpark, monkeypatch: pytest.MonkeyPatch, troubles: list[Exception]
) -> None:
    def strike(self: object, application: str) -> None:
        raise TimeOut

    def kill(self: object) -> None:
        FakeBatch.made[0].told.append("application killed")
        for trouble in troubles:
            raise trouble

    monkeypatch.setattr("airflow.providers.apache.spark.hooks.spark_submit.SparkSubmitHook.submit", strike)
    monkeypatch.setattr("airflow.providers.apache.spark.hooks.spark_submit.SparkSubmitHook.on_kill", kill)
    killed = operator()
    with pytest.raises(TimeOut):
        killed.execute({})
    assert FakeBatch.made[0].told == ["start", "stop", "application killed", "application_ended", "join"]
    killed.on_kill()
    assert FakeBatch.made[0].told[-3:] == ["stop", "application killed", "wait"]


def test_a_batch_whose_thread_dies_does_not_keep_the_task_waiting(
    spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connected_batch, "CompactionBatch", CompactionBatch)
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", "host": "127.0.0.1:1"}))

    def die(*_: object) -> None:
        raise MetastoreUnavailableError("metastore", "died", "start it")

    monkeypatch.setattr(connected_batch, "open_connected_worker", die)
    with pytest.raises(MetastoreUnavailableError, match="died"):
        operator().execute({})
    assert spark.calls() == []


@pytest.mark.parametrize(
    ("parameters", "most"),
    [
        ({}, 4),
        ({"max_active_partitions": 9}, 9),
        ({"max_active_partitions": "9"}, 9),
        ({"num_executors": 3, "executor_cores": 2}, 12),
        ({"num_executors": 3}, 6),
        ({"total_executor_cores": 5}, 10),
        ({"max_active_partitions": 1, "num_executors": 3}, 1),
    ],
)
def test_so_many_partitions_are_in_work_at_once(spark: FakeSpark, parameters: dict[str, Any], most: int) -> None:
    operator(**parameters).execute({})
    assert FakeBatch.made[0].max_active == most
    assert FakeBatch.made[0].max_small == (0 if "max_active_partitions" in parameters else 64)


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"partitions": "[{'database': 'd'}]"}, "partitions"),
        ({"partitions": [{"table": "t"}]}, "partitions"),
        ({"partitions": [PARTITION, PARTITION]}, "partitions"),
        ({"max_active_partitions": 0}, "max_active_partitions"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name_before_anything_begins(
    spark: FakeSpark, parameters: dict[str, Any], name: str
) -> None:
    with pytest.raises(AirflowFailException, match=f"^parameter {name}: "):
        operator(**parameters).execute({})
    assert FakeBatch.made == []
