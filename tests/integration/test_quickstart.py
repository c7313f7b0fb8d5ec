"""``./quickstart`` as a newcomer runs it, with warm caches."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time
import urllib.request
import uuid
from pathlib import Path

import pytest

from tests.harness.acid_reader import Snapshot, read_table
from tests.harness.generated_table import COLUMNS, GeneratedTable, write_files
from tests.harness.quickstart.table_state import fast_figures

REPOSITORY = Path(__file__).parents[2]
TIMEOUT_SECONDS = 480
MARK = "QUICKSTART_TEST"


class Quickstart:
    """A run whose processes are known by a mark in their environment."""

    def __init__(self, *arguments: str, stdout: int = subprocess.PIPE) -> None:
        self._mark = f"{MARK}={uuid.uuid4().hex}"
        name, value = self._mark.split("=")
        self.process = subprocess.Popen(
            [str(REPOSITORY / "quickstart"), *arguments],
            cwd="/",
            env={**os.environ, name: value, "COLUMNS": "120", "AIRFLOW__CORE__DAGS_FOLDER": "/nowhere"},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def command_lines(self) -> list[str]:
        """Of every process that this run started and that still runs."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self._mark.encode() in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        return [line for line in found if line]

    def wait_for_process(self, part: str) -> None:
        end = time.monotonic() + TIMEOUT_SECONDS
        while not any(part in line for line in self.command_lines()):
            assert self.process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.2)

    def processes_left(self) -> list[str]:
        """After a moment for those that end because what they talked to has ended."""
        end = time.monotonic() + 10
        while (left := self.command_lines()) and time.monotonic() < end:
            time.sleep(0.2)
        return left

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=120)


@pytest.fixture(scope="module")
def output() -> list[str]:
    """The lines of a run that was left alone."""
    run = Quickstart()
    try:
        text, _ = run.process.communicate(timeout=TIMEOUT_SECONDS)
    finally:
        run.kill()
    lines = text.decode().splitlines()
    assert run.process.returncode == 0, text.decode()
    assert run.processes_left() == []
    return lines


def test_the_last_line_says_what_was_gained(output: list[str]) -> None:
    figures = json.loads(output[-1])
    assert list(figures) == [
        "partitions_compacted", "rows_before", "rows_after", "directories_before", "directories_after",
        "bytes_before", "bytes_after",
    ]  # fmt: skip
    assert figures["partitions_compacted"] == 26
    assert figures["rows_before"] == figures["rows_after"] > 1_000_000
    assert figures["directories_after"] <= figures["directories_before"] - 26
    assert 0 < figures["bytes_after"] < figures["bytes_before"]
    assert sum(line.startswith("{") for line in output) == 1


def test_every_partition_is_shown_before_and_after_with_its_checksum(output: list[str]) -> None:
    shown = [line for line in output if re.search(r"\d+ → \d+ +[█░]+ ", line)]
    assert len(shown) == 32
    assert (
        sum(line.rstrip().endswith("same") for line in shown) == 31
    )  # but for the insert-only table, whose rows have no ids to compare
    assert sum(bool(re.match(r"orders/day=2024-03-0\d +generated +23 → 1 ", line)) for line in shown) == 3
    assert [line for line in shown if re.match(r"acid_abort +Hive 4.0.1 +6 → 1 ", line)]
    assert [line for line in shown if re.match(r"a_abort +Hive 3.1.3 +6 → 1 ", line)]


def test_insert_only_and_converted_tables_are_compacted_too(output: list[str]) -> None:
    assert [line for line in output if re.match(r"mm_plain +Hive 4.0.1 +3 → 1 ", line)]
    assert [line for line in output if re.match(r"a_conv +Hive 3.1.3 +4 → 1 ", line)]


def test_without_a_terminal_there_are_few_lines_and_no_control_characters(output: list[str]) -> None:
    assert len(output) < 80
    assert not any("\x1b" in line or "\r" in line for line in output)
    assert any(re.match(r"  orders/day=2024-03-01: (compacted|cleaned), 5\.\d MiB", line) for line in output)


def test_a_run_that_is_ended_leaves_nothing_behind(output: list[str]) -> None:
    """On a terminal, with Spark at work; it is also the second run beside the folder of the first."""
    terminal, slave = pty.openpty()
    run = Quickstart(stdout=slave)
    os.close(slave)
    shown = b""
    try:
        while b"planned" not in shown:
            shown += os.read(terminal, 65536)
        run.wait_for_process("SparkSubmit")
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(timeout=120) == 128 + signal.SIGTERM
        assert run.processes_left() == []
    finally:
        run.kill()
        os.close(terminal)
    assert re.search(rb"\d+ partitions begun, 0 compacted", shown)
    assert re.search(rb"orders/day=2024-03-01 .*planned", shown)


def test_the_ui_answers_with_the_dag_at_work_until_it_is_interrupted() -> None:
    run = Quickstart("--ui")
    assert run.process.stdout is not None
    try:
        lines = iter(lambda: run.process.stdout.readline().decode(), "")  # type: ignore[union-attr]
        address = next(found[1] for line in lines if (found := re.search(r"(http://127\.0\.0\.1:\d+)/", line)))
        with urllib.request.urlopen(address, timeout=30) as page:
            assert b"<html" in page.read()
        token = _get(f"{address}/auth/token")["access_token"]
        dag = _get(f"{address}/api/v2/dags/acid_compaction", token)
        assert (dag["dag_id"], dag["is_paused"]) == ("acid_compaction", False)
        run.process.send_signal(signal.SIGINT)
        assert run.process.wait(timeout=120) == 0
        assert run.processes_left() == []
    finally:
        run.kill()
        run.process.stdout.close()


def _get(url: str, token: object = None) -> dict[str, object]:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=30) as answer:
        content: dict[str, object] = json.load(answer)
    return content


def test_the_fast_reader_sees_what_the_slow_one_sees_and_misses_nothing(tmp_path: Path) -> None:
    table = GeneratedTable("default", "t", days=("2024-01-01",), merges=4, rows_per_delta=300)
    write_files(table, tmp_path, writers=1, write_ids=[1, 2, 3, 5])
    (folder,) = tmp_path.iterdir()
    everything = Snapshot(5)
    rows = read_table(folder, COLUMNS, everything)
    count, checksum = fast_figures(folder, everything)
    assert count == len(rows) == 4 * 300 - (1 + 2 + 3) * 3
    assert fast_figures(folder, Snapshot(5, aborted_write_ids={5}))[0] == 3 * 300 - (1 + 2) * 3
    shutil.rmtree(folder / "delete_delta_0000002_0000002_0001")
    assert fast_figures(folder, everything) not in [(count, checksum), (count, 0)]
    assert fast_figures(folder, everything)[0] == count + 3
