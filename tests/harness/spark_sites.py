"""Where a task's Spark applications run, as Airflow and the operator are told."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class SparkSite:
    """A place for applications.

    :param connection: the Airflow connection to it.
    :param parameters: of the operator.
    :param environment: of the task's process.
    """

    connection: Mapping[str, object]
    parameters: Mapping[str, Any]
    environment: Mapping[str, str]


LOCAL_SPARK = SparkSite(
    {"conn_type": "spark", "host": "local[2]"},
    {"conf": {"spark.ui.enabled": "false"}},
    {
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        # spark-submit hands it on.
        "PYTHONPATH": "",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    },
)
"""The machine itself, with two task slots, and the Python of this process."""
