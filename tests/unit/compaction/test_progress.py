from __future__ import annotations

import logging
from pathlib import Path

import pytest

from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.progress import Progress, human_bytes
from tests.unit.spark_jobs.acid_files import Partition, insert


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (12 * 2**20, "12.0 MiB"),
        (2**30, "1.0 GiB"),
        (5 * 2**40, "5.0 TiB"),
        (2**50, "1024.0 TiB"),
    ],
)
def test_bytes_are_written_for_people(count: int, text: str) -> None:
    assert human_bytes(count) == text


def test_each_partition_says_when_it_begins_advances_and_ends(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    partition = Partition(tmp_path / "t")
    partition.write("delta_0000001_0000001", [insert(1, 0, 1)])
    plan = partition.plan()
    progress = Progress()
    with caplog.at_level(logging.INFO):
        progress.began(plan)
        progress.advanced(plan.entity, 2048)
        progress.ended(Outcome(plan.entity, OutcomeState.COMPACTED, "done"))
        progress.ended(Outcome(plan.entity, OutcomeState.REFUSED, "not ACID"))
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO", "INFO", "ERROR"]
    assert "db.t: merging 2.0 KiB of " in caplog.messages[1]
    assert caplog.messages[2:] == ["db.t: compacted: done", "db.t: refused: not ACID"]
