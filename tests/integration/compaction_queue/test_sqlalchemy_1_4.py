"""Airflow 2.11 pins SQLAlchemy 1.4: the queue in the database works with it as well."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.harness.metastore_server import MetastoreServer
from tests.integration.compaction_queue.running import KIND, environment_of

PROJECT = Path(__file__).parents[3]
SUITES = ("test_states.py", "test_lost_answers.py", "test_sql_only.py")


def test_the_suites_of_the_queue_pass_with_sqlalchemy_1_4(hive_3_metastore: MetastoreServer, tmp_path: Path) -> None:
    library = tmp_path / "library"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(library)]
    subprocess.run([*install, "sqlalchemy>=1.4.49,<2"], check=True)
    path = os.pathsep.join((str(library), str(PROJECT)))
    environment = {**os.environ, **environment_of(hive_3_metastore), "PYTHONPATH": path}
    version = subprocess.run(
        [sys.executable, "-c", "import sqlalchemy; print(sqlalchemy.__version__)"],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert version.stdout.startswith("1.4."), version.stdout
    suites = [str(Path(__file__).with_name(name)) for name in SUITES]
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", KIND, *suites]
    done = subprocess.run(run, env=environment, cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout
