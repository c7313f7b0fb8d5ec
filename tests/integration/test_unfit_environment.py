"""What is wrong with the environment is told once, and is never counted against a partition.

What can be seen from Airflow's worker is told before anything is claimed. What only the Spark application can see it
tells before it reads a file; what is claimed by then is given back as it was.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from airflow_provider_acid.compaction.evaluate.failures import failures_in_a_row
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.every_case import every_case
from tests.harness.spark_cluster import SparkCluster
from tests.integration.cluster_runs import PARTITIONS, due_items, due_table, operator, rows_of, run
from tests.integration.compaction_site import AcidTable, Site

LACKING = "raise ModuleNotFoundError(\"No module named '{0}'\", name='{0}')\n"
TOO_OLD = "import pyarrow\npyarrow.__version__ = '18.0.0'\n"

Parameters = Mapping[str, Any]


@dataclass
class Environment:
    """Makes faults; each gives the operator's parameters that go with it."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch

    def _python(self, module: str, text: str) -> str:
        file = self.folder / f"{module.replace('.', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return str(self.folder)

    def of_executors(self, module: str, text: str) -> Parameters:
        """Another module of that name for their Python."""
        return {"settings": {"spark.executorEnv.PYTHONPATH": self._python(module, text)}}

    def of_driver(self, module: str, text: str) -> Parameters:
        """The same for the driver's alone."""
        self.monkeypatch.setenv("PYTHONPATH", self._python(module, text))
        return {"settings": {"spark.executorEnv.PYTHONPATH": ""}}

    def submit_fails(self) -> Parameters:
        """Whatever the cause is, before there is a driver."""
        program = self.folder / "spark-submit"
        program.write_text("#!/bin/sh\necho the cluster is away\nexit 1\n")
        program.chmod(0o755)
        self.monkeypatch.setenv("PATH", os.pathsep.join((str(self.folder), os.environ["PATH"])))
        return {}

    def no_java(self) -> Parameters:
        self.monkeypatch.setenv("JAVA_HOME", str(self.folder))
        return {}

    def no_master(self) -> Parameters:
        nobody = {"conn_type": "spark", "host": "spark://127.0.0.1", "port": 1}
        self.monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(nobody))
        return {}

    def no_run_directory(self) -> Parameters:
        return {"run_directory": str(self.folder / "none")}

    def run_directory_is_a_file(self) -> Parameters:
        (self.folder / "_acid_runs").touch()
        return {"run_directory": str(self.folder)}

    def run_directory_of_everybody(self) -> Parameters:
        own = self.folder / ".airflow_acid"
        own.mkdir()
        own.chmod(0o777)
        self.monkeypatch.setenv("HOME", str(self.folder))
        return {}

    def forbidden(self, where: str) -> Parameters:
        """Root may write everywhere, so the storage has to say that this user may not."""
        self.monkeypatch.setattr(LocalStorage, "may_change", lambda storage: where not in storage.location)
        return {}


@dataclass(frozen=True)
class Case:
    """
    :param told: begins the error's text, or what it says of the first partition.
    :param is_claimed: whether it comes to light when something is claimed.
    :param may_pass: whether Airflow is to try again.
    """

    make: Callable[[Environment], Parameters]
    told: str
    is_claimed: bool = True
    may_pass: bool = False


EXECUTORS = "executors of the Spark application: cannot merge anything"
DRIVER = r"Python \S+ of Spark's driver: cannot import"
OLD = "pyarrow 18.0.0: is older than"
RUNS = "is where compactions exchange plans and results"
CASES = {
    "no right to write into the partitions": Case(
        lambda its: its.forbidden("/p="), "may not be written into by this user", is_claimed=False
    ),
    "no right to write into the run directory": Case(
        lambda its: its.forbidden("/home"), f".airflow_acid/runs: {RUNS}, and .* may not write", is_claimed=False
    ),
    "no run directory": Case(Environment.no_run_directory, f"none/_acid_runs: {RUNS}", is_claimed=False),
    "a file in its place": Case(Environment.run_directory_is_a_file, f"_acid_runs: {RUNS}", is_claimed=False),
    "a run directory of everybody": Case(
        Environment.run_directory_of_everybody,
        f".airflow_acid: {RUNS}, and may be written to",
        is_claimed=False,
    ),
    "no Java": Case(Environment.no_java, "spark-submit: finds no Java"),
    "spark-submit fails": Case(Environment.submit_fails, "the Spark application ended before it read", may_pass=True),
    "no master": Case(Environment.no_master, "the Spark application ended before it read", may_pass=True),
    "a driver without pyarrow": Case(lambda its: its.of_driver("pyarrow", LACKING.format("pyarrow")), DRIVER),
    "a driver without pyorc": Case(lambda its: its.of_driver("pyorc", LACKING.format("pyorc")), DRIVER),
    "a driver with an old pyarrow": Case(lambda its: its.of_driver("sitecustomize", TOO_OLD), OLD),
    "executors without pyarrow": Case(lambda its: its.of_executors("pyarrow", LACKING.format("pyarrow")), EXECUTORS),
    "executors without pyorc": Case(lambda its: its.of_executors("pyorc", LACKING.format("pyorc")), EXECUTORS),
    "executors without protobuf": Case(
        lambda its: its.of_executors("google.protobuf", LACKING.format("google.protobuf")), EXECUTORS
    ),
    "executors with an old pyarrow": Case(lambda its: its.of_executors("sitecustomize", TOO_OLD), OLD),
}


@pytest.fixture
def table(site: Site) -> AcidTable:
    return due_table(site)


LONG_FORM = ("a driver without pyarrow", "executors without pyarrow", "executors without pyorc")
"""Cases that differ from others by the name of a package, and take an application each."""


@pytest.mark.parametrize("name", [name for name in CASES if every_case() or name not in LONG_FORM])
def test_what_is_wrong_with_the_environment_is_told_and_counted_against_no_partition(
    table: AcidTable, cluster: SparkCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    case = CASES[name]
    rows, files = rows_of(table), table.fingerprint()
    with monkeypatch.context() as changed, pytest.raises(AirflowException) as failure:
        run(operator(cluster, due_items(table), **case.make(Environment(tmp_path, changed))))
    assert re.search(f"{case.told}.* Remedy: |{case.told}", str(failure.value)), failure.value
    assert isinstance(failure.value, AirflowFailException) is not case.may_pass, failure.value
    claims = [row for partition in PARTITIONS for row in table.site.rows(table.entity(partition))]
    assert {row.state for row in claims} == ({CompactionState.REFUSED} if case.is_claimed else set())
    assert failures_in_a_row(claims, count_deaths=True) == 0
    assert (rows_of(table), table.fingerprint()) == (rows, files)
