"""How the run's key gets to the application, and that nothing else has it."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowException

from tests.unit.provider.fake_spark import FakeSpark
from tests.unit.provider.test_compaction_operator import FAILED, KEY, end_with, operator, spark

__all__ = ["spark"]

# Airflow's hook leaves the pipe to spark-submit to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.mark.parametrize("users", [None, "one.txt,two.txt"])
def test_the_key_goes_as_a_file_that_nobody_else_may_read_and_that_is_gone_afterwards(
    spark: FakeSpark, users: str | None
) -> None:
    """In client mode the driver reads it where it is."""
    again = operator(files=users)
    again.execute({})
    (path,) = spark.option("--key-file")
    assert spark.kept(path) == ("600", "700", KEY.secret)
    assert not Path(path).parent.exists()
    assert ("--files" in spark.calls()[0], again.files) == (users is not None, users)


@pytest.mark.parametrize("users", [None, "one.txt,two.txt"])
@pytest.mark.parametrize("by_connection", [True, False])
def test_in_cluster_mode_it_is_sent_along_behind_the_users_files_again_in_every_try(
    spark: FakeSpark, monkeypatch: pytest.MonkeyPatch, users: str | None, by_connection: bool
) -> None:
    connection = {"conn_type": "spark", "host": "yarn"}
    extra = {"extra": {"deploy-mode": "cluster"}} if by_connection else {}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({**connection, **extra}))
    again = operator(files=users, **({} if by_connection else {"deploy_mode": "cluster"}))
    again.execute({})
    again.execute({})
    assert again.files == users
    before = users.split(",") if users else []
    assert [value.split(",") for value in spark.option("--files")] == [
        [*before, path] for path in spark.option("--key-file")
    ]
    assert len(set(spark.option("--key-file"))) == 2


def test_no_argument_and_no_setting_has_the_key(spark: FakeSpark, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        operator().execute({})
    told = " ".join(spark.calls()[0]) + spark.environment() + caplog.text + repr(KEY)
    assert [form for form in (KEY.secret.hex(), repr(KEY.secret)[2:-1]) if form in told] == []


def test_the_key_file_goes_where_the_application_fails_too(spark: FakeSpark, monkeypatch: pytest.MonkeyPatch) -> None:
    spark.ends_with(3)
    with pytest.raises(AirflowException):
        operator(partitions=end_with(monkeypatch, FAILED)).execute({})
    (path,) = spark.option("--key-file")
    assert spark.kept(path)[2] == KEY.secret
    assert not Path(path).parent.exists()
