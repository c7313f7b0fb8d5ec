"""DAG files are read every half minute: nothing that only tasks need is loaded for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

HEAVY = [
    *("boto3", "hmsclient", "kubernetes", "numpy", "pandas", "pyarrow", "pyorc", "pyspark", "requests", "rich"),
    *("sqlalchemy", "airflow.models", "airflow.providers.apache.spark", "airflow.providers.openlineage"),
]
"""Airflow itself has loaded some of them by then, SQLAlchemy in any case. Spark's provider takes a second."""

PROGRAM = """
import json, sys
from airflow.providers.common.compat.sdk import DAG
loaded = {*sys.modules}
exec(sys.argv[1])
print(json.dumps(sorted({*sys.modules} - loaded)))
"""

MAKE_A_SWEEP = "from airflow_provider_acid.installed_dags import acid_compaction_dag\nacid_compaction_dag('sweep')"
CODES = {
    **{path.name: path.read_text() for path in sorted((ROOT / "dags").glob("*.py"))},
    "a sweep": MAKE_A_SWEEP,
}


def loaded_by(code: str, home: Path) -> set[str]:
    """Modules that a DAG file loads besides those of Airflow's DAGs."""
    command = [sys.executable, "-c", PROGRAM, code]
    environment = {**os.environ, "AIRFLOW_HOME": str(home), "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return {*json.loads(answer.stdout.splitlines()[-1])}


@pytest.mark.parametrize("name", CODES)
def test_a_dag_file_loads_nothing_that_only_tasks_need(name: str, tmp_path: Path) -> None:
    loaded = loaded_by(CODES[name], tmp_path)
    assert "airflow_provider_acid.operators" in loaded
    assert [heavy for heavy in HEAVY if heavy in loaded] == []


def test_what_a_dag_file_loads_is_noticed(tmp_path: Path) -> None:
    assert {"pyarrow", "hmsclient"} <= loaded_by("import pyarrow, hmsclient", tmp_path)
