"""The Airflow connection to Spark: what keeps an application from starting is told before anything is claimed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook

from airflow_provider_acid.exceptions import ConfigurationError


def spark_connection(conn_id: str, make_hook: Callable[[], SparkSubmitHook]) -> Mapping[str, Any]:
    """What Airflow's hook makes of a Spark connection: ``master``, ``deploy_mode``, ``spark_binary`` and more.

    :raises ConfigurationError: there is none, which Airflow's hook takes for YARN; or the hook cannot use it.
    """
    subject = f"connection {conn_id}"
    try:
        BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        raise ConfigurationError(subject, "does not exist", "make one of type Spark, or correct conn_id") from error
    try:
        connection: Mapping[str, Any] = make_hook()._connection
    except (ValueError, RuntimeError) as error:
        raise ConfigurationError(subject, f"cannot be used for Spark ({error})", "correct it") from error
    return connection


def check_program(program: str, env_vars: Mapping[str, str] | None) -> None:
    """Look for ``spark-submit``, or what stands in its place, without starting it.

    :param env_vars: of the operator; Airflow's hook starts the program with them.
    :raises ConfigurationError: no executable file of that name is on the ``PATH``.
    """
    paths = (os.environ.get("PATH", os.defpath), (env_vars or {}).get("PATH", ""))
    if not any(shutil.which(program, path=path) for path in paths):
        raise ConfigurationError(
            program,
            "is not on the PATH of Airflow's worker, so that no Spark application can be started",
            "install Spark there (pip install airflow-provider-acid[spark]), or put its bin directory on the PATH",
        )
