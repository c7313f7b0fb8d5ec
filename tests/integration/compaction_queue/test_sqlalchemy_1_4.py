"""Airflow 2.11 pins SQLAlchemy 1.4: the queue in the database works with it as well."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[3]
SUITE = Path(__file__).with_name("test_states.py")


def test_the_suite_of_the_queue_passes_with_sqlalchemy_1_4(tmp_path: Path) -> None:
    library = tmp_path / "library"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(library)]
    subprocess.run([*install, "sqlalchemy>=1.4.49,<2"], check=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(library), str(PROJECT)))}
    version = subprocess.run(
        [sys.executable, "-c", "import sqlalchemy; print(sqlalchemy.__version__)"],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert version.stdout.startswith("1.4."), version.stdout
    suite = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "hive-3-postgresql", str(SUITE)]
    run = subprocess.run(suite, env=environment, cwd=PROJECT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-5000:]
