from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.work.progress import LINE_SECONDS, Progress
from tests.unit.merge.acid_files import Partition, insert

MIB = 2**20


class Clock:
    """Goes on when told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.seconds)


def test_each_partition_says_when_it_begins_advances_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    partition = Partition(tmp_path / "t")
    partition.write("delta_0000001_0000001", [insert(1, 0, 1)])
    plan = partition.plan()
    clock = Clock(monkeypatch)
    with caplog.at_level(logging.INFO):
        progress = Progress(2)
        progress.began(plan)
        clock.seconds += 20
        progress.advanced(plan.entity, plan.input_bytes // 2)
        progress.ended(Outcome(plan.entity, OutcomeState.COMPACTED, "done"))
        progress.ended(Outcome(plan.entity, OutcomeState.REFUSED, "not ACID"))
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO", "INFO", "INFO", "ERROR"]
    assert caplog.messages[1].startswith("db.t: merging, ")
    assert caplog.messages[1].endswith("B/s, about 20 s left")
    assert caplog.messages[2] == "db.t: compacted: done"
    assert caplog.messages[4] == "db.t: refused: not ACID"


def test_a_partition_that_advances_all_the_time_does_not_fill_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    partition = Partition(tmp_path / "t")
    partition.write("delta_0000001_0000001", [insert(1, 0, 1)])
    plan = partition.plan()
    clock = Clock(monkeypatch)
    progress = Progress(1)
    progress.began(plan)
    with caplog.at_level(logging.INFO):
        for _ in range(100):
            clock.seconds += 1
            progress.advanced(plan.entity, 1)
    assert len([line for line in caplog.messages if "merging, " in line]) == 100 // LINE_SECONDS


def test_a_long_batch_says_how_far_it_is_and_what_is_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock(monkeypatch)
    progress = Progress(4)
    with caplog.at_level(logging.INFO):
        for number in range(4):
            clock.seconds += 10
            entity = Entity("d", "t", f"p={number}")
            progress.ended(Outcome(entity, OutcomeState.COMPACTED, "done", bytes_before=100 * MIB))
    assert [line for line in caplog.messages if "partitions done" in line] == [
        "2 of 4 partitions done, 200.0 MiB merged, 10.0 MiB/s, about 20 s left"
    ]
