"""Without spark-submit, or a Spark connection that can be used, nothing is claimed, and no other try is made."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import (
    AirflowFailException,
    AirflowNotFoundException,
    BaseHook,
    Connection,
)

from airflow_provider_acid.compaction.outcomes import DuePartition
from airflow_provider_acid.hooks import connected_batch
from airflow_provider_acid.operators.compaction import AcidCompactionOperator

PARTITION = {"database": "d", "table": "t", "partition": "p=1"}


class StartedError(Exception):
    """The batch would claim its first partition now."""


class StartingBatch:
    """Shows that work began; only from then on are there claims, transactions and rows that could fail."""

    def __init__(self, items: Sequence[DuePartition], *_: object, **__: object) -> None: ...

    def start(self) -> None:
        raise StartedError


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH; it is empty."""
    monkeypatch.setattr(connected_batch, "CompactionBatch", StartingBatch)
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", "host": "not.asked"}))
    connect(monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def connect(monkeypatch: pytest.MonkeyPatch, host: str = "local[1]", **extra: str) -> None:
    spark = {"conn_type": "spark", "host": host, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark))


def put(program: Path, mode: int = 0o755) -> Path:
    program.write_text("#!/bin/sh\n")
    program.chmod(mode)
    return program


def execute(**parameters: Any) -> None:
    AcidCompactionOperator(task_id="compact", partitions=[PARTITION], **parameters).execute({})


@pytest.mark.parametrize(
    ("parameters", "extra", "program"),
    [
        ({}, {}, "spark-submit"),
        ({}, {"spark-binary": "spark3-submit"}, "spark3-submit"),
        ({"spark_binary": "/opt/none/bin/spark-submit"}, {}, "/opt/none/bin/spark-submit"),
        ({"env_vars": {"PATH": "/nowhere/else"}}, {}, "spark-submit"),
    ],
)
def test_a_missing_spark_submit_is_found_before_anything_is_claimed(
    monkeypatch: pytest.MonkeyPatch, parameters: dict[str, Any], extra: dict[str, str], program: str
) -> None:
    connect(monkeypatch, **extra)
    with pytest.raises(AirflowFailException, match=f"^{program}: is not on the PATH here.* Remedy: "):
        execute(**parameters)


def test_a_file_of_its_name_that_nobody_may_execute_is_none(programs: Path) -> None:
    put(programs / "spark-submit", 0o644)
    with pytest.raises(AirflowFailException, match="^spark-submit: is not on the PATH"):
        execute()


def test_work_begins_where_it_is_there(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(programs / "spark-submit")
    with pytest.raises(StartedError):
        execute()
    monkeypatch.setenv("PATH", "/nowhere")
    for parameters in ({"env_vars": {"PATH": str(programs)}}, {"spark_binary": str(programs / "spark-submit")}):
        with pytest.raises(StartedError):
            execute(**parameters)


@pytest.mark.parametrize(
    ("parameters", "extra", "reason"),
    [
        ({}, {"spark-binary": "rm"}, "connection spark_default: cannot be used for Spark .*spark-binary"),
        ({}, {"spark-home": "/opt/spark"}, "connection spark_default: cannot be used for Spark .*spark-home"),
        ({"deploy_mode": "cluster"}, {}, "deploy mode 'cluster' on local.1.: is not possible"),
        ({"keytab": "/k"}, {}, "connection spark_default or the task itself: has keytab, but not principal"),
    ],
)
def test_a_spark_connection_that_cannot_be_used_is_found_before_anything_is_claimed(
    programs: Path, monkeypatch: pytest.MonkeyPatch, parameters: dict[str, Any], extra: dict[str, str], reason: str
) -> None:
    put(programs / "spark-submit")
    connect(monkeypatch, **extra)
    with pytest.raises(AirflowFailException, match=f"^{reason}"):
        execute(**parameters)


def test_a_yarn_with_kerberos_is_not_watched_without_the_package_for_it(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(programs / "spark-submit")
    monkeypatch.setitem(sys.modules, "requests_kerberos", None)
    connect(monkeypatch, "yarn", yarn_resourcemanager_webapp_address="http://rm:8088", **{"deploy-mode": "cluster"})
    tickets = {"keytab": "/k", "principal": "airflow@EXAMPLE.ORG"}
    with pytest.raises(AirflowFailException, match="^connection spark_default: cannot be used .*requests-kerberos"):
        execute(**tickets, yarn_track_via_rm_api=True)
    with pytest.raises(StartedError):
        execute(**tickets)


def test_kubernetes_is_refused_without_the_package_by_which_airflow_speaks_to_it(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(programs / "spark-submit")
    connect(monkeypatch, "k8s://https://kubernetes.example.com:6443", **{"deploy-mode": "cluster"})
    # Airflow's hook has no such name where the import failed.
    imported = "airflow.providers.apache.spark.hooks.spark_submit.kube_client"
    monkeypatch.delattr(imported, raising=False)
    with pytest.raises(AirflowFailException, match="^connection spark_default: .*providers-cncf-kubernetes"):
        execute()
    monkeypatch.setattr(imported, object(), raising=False)
    with pytest.raises(StartedError):
        execute()


def test_a_spark_connection_that_nobody_made_is_not_taken_for_yarn(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(programs / "spark-submit")

    def find(conn_id: str) -> Connection:
        if conn_id == "spark_typo":
            raise AirflowNotFoundException(conn_id)
        return Connection(conn_id=conn_id, conn_type="hive_acid", host="not.asked")

    monkeypatch.setattr(BaseHook, "get_connection", staticmethod(find))
    with pytest.raises(AirflowFailException, match=r"^connection spark_typo: does not exist\. Remedy: make one"):
        execute(conn_id="spark_typo")
