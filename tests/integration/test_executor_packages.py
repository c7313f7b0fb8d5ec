"""A real Spark application says what its executors have."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from airflow_provider_acid.doctor.finding import Severity
from airflow_provider_acid.operators.executor_packages import NEEDED, ExecutorPackages


@pytest.mark.parametrize("api_mode", ["", "connect"])
def test_the_executors_of_a_real_spark_have_what_is_installed_here(
    monkeypatch: pytest.MonkeyPatch, api_mode: str
) -> None:
    monkeypatch.setenv("SPARK_API_MODE", api_mode)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    (found,) = ExecutorPackages(SparkSubmitHook(conn_id="spark_default")).findings()
    assert found.severity is Severity.OK
    assert f"python {platform.python_version()}" in found.seen
    for name in NEEDED:
        assert f"{name} {version(name)}" in found.seen
