"""Sensor, operator with a real spark-submit, and cleaner, one after the other in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.harness.airflow_connections import connections_to
from tests.harness.metastore_server import MetastoreServer
from tests.harness.spark_sites import LOCAL_SPARK, SparkSite

SPARK_SECONDS = 600
LOG_FILE = "tasks.log"
_TASKS = """
import json, sys
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor

sensor = AcidCompactionSensor(
    task_id="due", tables=[sys.argv[1]], delta_num_threshold=0, override_no_auto_compaction=True
)
[due] = sensor.poke({}).xcom_value
compact = AcidCompactionOperator(task_id="compact", partitions=due, **json.loads(sys.argv[2]))
compacted = compact.execute({})
cleaned = AcidCleanerOperator(task_id="clean", partitions=compacted, deferrable=False, poll_seconds=1).execute({})
print("DUE", json.dumps(due))
print("OUTCOMES", json.dumps([compacted, cleaned]), flush=True)
"""


def run_tasks(
    server: MetastoreServer,
    tables: str,
    options: Mapping[str, object],
    environment: Mapping[str, str],
    home: Path,
    spark: SparkSite = LOCAL_SPARK,
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Sensor, operator with a real spark-submit, and cleaner; what the last two return.

    :param environment: goes before the connections to the server.
    :param home: made; what the tasks write to their log is kept in :data:`LOG_FILE` there.
    """
    home.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", _TASKS, tables, json.dumps(spark.parameters)],
        env={
            **os.environ,
            **connections_to(server, storage=options),
            **environment,
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark.connection),
            **spark.environment,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        },
        cwd=home,
        text=True,
        capture_output=True,
        timeout=SPARK_SECONDS,
    )
    (home / LOG_FILE).write_text(done.stdout + done.stderr)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("OUTCOMES "))
    compacted, cleaned = json.loads(line.removeprefix("OUTCOMES "))
    return compacted, cleaned
