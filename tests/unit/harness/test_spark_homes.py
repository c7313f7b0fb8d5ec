"""What several processes of the tests make at once is made, and used by each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness import spark_homes
from tests.harness.jars import publish


def test_a_python_that_another_process_made_meanwhile_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def another_was_first(*_: str) -> None:
        for made in tmp_path.glob(".venv-*"):
            other = tmp_path / "other"
            made.rename(other)
            made.mkdir()
            publish(other, tmp_path / name)

    monkeypatch.setattr(spark_homes, "cache_base", lambda: tmp_path)
    monkeypatch.setattr(spark_homes, "_pip", lambda *_: None)
    expected = spark_homes.executor_python()
    name = expected.parents[1].name
    expected.parents[1].rename(tmp_path / "former")
    monkeypatch.setattr(spark_homes, "_pip", another_was_first)
    assert spark_homes.executor_python() == expected
    assert expected.exists()
    assert list(tmp_path.glob(".venv-*")) == []
