from __future__ import annotations

import json
from pathlib import Path

from airflow_provider_acid.compaction.run_directory import RunDirectory


def test_a_report_that_is_just_being_written_is_left_for_the_next_look(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path.as_uri(), "run", items=9)
    folder = Path(run.location.removeprefix("file:"))
    partial = folder / "_0008.progress.1.5f2c.partial"
    partial.write_text('{"bytes_do')
    assert run.poll() == ({}, {})
    partial.write_text(json.dumps({"bytes_done": 7}))
    partial.rename(folder / "0008.progress.1")
    assert run.poll() == ({}, {8: 7})
    assert run.poll() == ({}, {})
