"""The Spark application as an operator starts it: a real spark-submit, a run directory, results as they come."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyspark
import pytest

from airflow_provider_acid.compaction.run.application import DEFAULT_CONF
from airflow_provider_acid.merge.app.driver import EXIT_ABANDONED, EXIT_DONE
from airflow_provider_acid.plan.plan import CompactionPlan, OrcOptions
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.shipped_files import shipped_file
from tests.harness.compaction_chain import wait_until
from tests.harness.executor_faults import Fault, local_settings_of
from tests.harness.run_files import RunFiles
from tests.unit.merge.acid_files import STAGING, Partition, delete, insert, read_events

TIMEOUT_SECONDS = 240


class Run:
    """A run directory and the application that works on it."""

    def __init__(self, directory: Path, idle_timeout_seconds: float = 120) -> None:
        self.directory = directory
        directory.mkdir()
        self.files = RunFiles(directory)
        self.files.put_batch(idle_timeout_seconds)
        (directory / "operator.alive.1").touch()
        self.key_file = self.files.put_key_file(directory.parent)

    def plan(self, item: int, plan: CompactionPlan) -> None:
        self.files.put_plan(item, plan)

    def result(self, item: int) -> CompactionResult:
        return self.files.result(item)

    def wait_for_result(self, item: int, process: subprocess.Popen[str]) -> CompactionResult:
        end = time.monotonic() + TIMEOUT_SECONDS
        while not (self.directory / f"{item:04d}.result.json").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.2)
        return self.result(item)

    def submit(self, *faults: Fault, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        command: Sequence[str] = (
            str(Path(pyspark.__file__).parent / "bin/spark-submit"),
            "--master",
            "local[2]",
            "--conf",
            "spark.ui.enabled=false",
            *(part for name, value in DEFAULT_CONF.items() for part in ("--conf", f"{name}={value}")),
            str(shipped_file("spark_jobs/compact.py")),
            "--run-directory",
            self.directory.as_uri(),
            "--key-file",
            str(self.key_file),
        )
        settings = local_settings_of(*faults)
        path = os.pathsep.join([settings.pop("PYTHONPATH"), *(place for place in sys.path if place)])
        environment = {
            **os.environ,
            **(environment or {}),
            **settings,
            "PYTHONPATH": path,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        return subprocess.Popen(
            command, cwd=self.directory, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )


def partition_with(path: Path, rows: int, buckets: int = 1) -> Partition:
    partition = Partition(path)
    for bucket in range(buckets):
        for write_id in (1, 2):
            events = [insert(write_id, row_id, row_id, bucket=bucket) for row_id in range(rows)]
            partition.write(f"delta_{write_id:07d}_{write_id:07d}_0000", events, bucket=bucket)
    partition.write("delete_delta_0000003_0000003_0000", [delete(1, 0, 3)])
    return partition


def damage(path: Path, source: str) -> None:
    file = path / source
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] + b"\xff" * (len(content) - len(content) // 2))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, list[Partition], str, int]:
    """Three partitions, the second corrupt, the third planned only when the first is done.

    Of the third every bucket is written in slices.
    """
    top = tmp_path_factory.mktemp("warehouse")
    partitions = [partition_with(top / f"p={number}", 50, buckets=3) for number in range(3)]
    damage(partitions[1].path, "delta_0000002_0000002_0000/bucket_00001")
    run = Run(top / "run")
    run.plan(0, partitions[0].plan())
    run.plan(1, partitions[1].plan())
    process = run.submit()
    try:
        run.wait_for_result(0, process)
        run.plan(2, partitions[2].plan(orc=OrcOptions(slice_bytes=1)))
        with run.files.ending_when_answered(0, 1, 2):
            output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    finally:
        process.kill()
    return run, partitions, output, process.returncode


def test_partitions_succeed_whatever_happens_to_another(finished: tuple[Run, list[Partition], str, int]) -> None:
    run, partitions, output, exit_code = finished
    assert exit_code == 0, output
    for item in (0, 2):
        result = run.result(item)
        assert result.error is None
        assert [(file.name, file.rows_in, file.rows_deleted, file.rows_out) for file in result.files] == [
            ("bucket_00000", 100, 1, 99),
            ("bucket_00001", 100, 0, 100),
            ("bucket_00002", 100, 0, 100),
        ]
        made = partitions[item].path / STAGING / "output" / "rows"
        assert sorted(file.name for file in made.iterdir()) == [
            "_metadata_acid",
            "_orc_acid_version",
            "bucket_00000",
            "bucket_00001",
            "bucket_00002",
        ]
        assert (made / "_orc_acid_version").read_bytes() == b"2"
        assert json.loads((made / "_metadata_acid").read_text()) == {"thisFileVersion": "0", "dataFormat": "compacted"}
        rows = [(write_id, row_id) for write_id in (1, 2) for row_id in range(50)]
        assert read_events(made / "bucket_00000") == [insert(*row, row[1]) for row in rows if row != (1, 0)]
        assert partitions[item].attempts() == []
        assert CompactionResult.from_json((made.parent.parent / "result.json").read_text()) == result
    assert [[file.stripes for file in run.result(item).files] for item in (0, 2)] == [[1, 1, 1], [2, 2, 2]]


def test_the_corrupt_partition_names_its_file_and_has_no_seal(finished: tuple[Run, list[Partition], str, int]) -> None:
    run, partitions, output, _ = finished
    error = run.result(1).error
    assert error is not None
    assert f"{partitions[1].path}/delta_0000002_0000002_0000/bucket_00001: is not a complete ORC file" in error
    assert "Remedy: " in error
    assert not (partitions[1].path / STAGING / "result.json").exists()
    assert error in output


def test_progress_is_told_while_it_works(finished: tuple[Run, list[Partition], str, int]) -> None:
    run, _, output, _ = finished
    assert "db.t: done in " in output
    told = [json.loads(file.read_text()) for file in sorted(run.directory.glob("000[02].progress.*"))]
    for progress in told:
        assert 0 < progress["bytes_done"] <= progress["bytes_total"]


def test_it_stops_when_the_operator_shows_no_sign_of_life(tmp_path: Path) -> None:
    run = Run(tmp_path / "run", idle_timeout_seconds=1)
    process = run.submit()
    output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == EXIT_ABANDONED, output
    assert "no sign of life from the operator for 1 s" in output


def test_it_ends_with_all_its_tasks_and_merges_when_its_run_directory_vanishes(tmp_path: Path) -> None:
    """A task of the one partition hangs in its file, the driver's thread of the other where it writes a marker.

    The first task is one of a pack, which is ended, so that the other partition is merged; the second hangs alone.
    """
    partitions = [partition_with(tmp_path / f"p={number}", 50) for number in range(2)]
    in_task = Fault.at(tmp_path / "in-task", "/p=0/.*/attempts/bucket_00000", "writing", tasks=2)
    in_driver = Fault.at(tmp_path / "in-driver", "/p=1/.*/output/rows/_orc_acid_version", "writing")
    run = Run(tmp_path / "run")
    for item, partition in enumerate(partitions):
        run.plan(item, partition.plan())
    process = run.submit(in_task, in_driver)
    try:
        in_task.wait_until_struck()
        in_driver.wait_until_struck()
        shutil.rmtree(run.directory)
        output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    finally:
        process.kill()
    assert process.returncode == EXIT_ABANDONED, output
    assert f"{run.directory.as_uri()}: was removed, nobody waits for results" in output
    wait_until(lambda: not in_task.a_worker_lives())
    assert not in_driver.a_worker_lives()
    assert not run.directory.exists()
    assert [(partition.path / STAGING / "result.json").exists() for partition in partitions] == [False, False]


@pytest.mark.parametrize("told_by", ["spark-defaults.conf", "SPARK_API_MODE"])
def test_it_has_a_session_of_its_own_where_a_site_speaks_spark_connect(tmp_path: Path, told_by: str) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.api.mode connect" if told_by == "spark-defaults.conf" else "")
    partition = partition_with(tmp_path / "p=0", 50)
    run = Run(tmp_path / "run")
    run.plan(0, partition.plan())
    mode = {"SPARK_API_MODE": "connect"} if told_by == "SPARK_API_MODE" else {}
    process = run.submit(environment={"SPARK_CONF_DIR": str(tmp_path), **mode})
    try:
        with run.files.ending_when_answered(0):
            output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    finally:
        process.kill()
    assert process.returncode == EXIT_DONE, output
    assert run.result(0).error is None
