"""``./release`` from its tag to its files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from airflow_provider_acid import __version__
from tests.harness.wheel_environment import run
from tests.unit.test_release import tag_this_tree


def test_a_release_is_built_tried_on_a_metastore_and_ready_to_be_uploaded(tmp_path: Path) -> None:
    tag_this_tree(tmp_path)
    command = [sys.executable, "-m", "tests.harness.release", __version__]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "2 tables compacted and cleaned, every row as Hive read it" in answer.stdout
    target = tmp_path / "dist" / __version__
    assert len(list(target.iterdir())) == 3
    assert len(run("sha256sum", "--check", "SHA256SUMS", cwd=target).splitlines()) == 2
    assert f"twine upload {target}" in answer.stdout.splitlines()[-1]
    again = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert again.returncode == 1
    assert "is there already" in again.stderr
