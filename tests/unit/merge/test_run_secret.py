"""Where the driver looks for the run's key, in each deploy mode."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark import SparkFiles

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.merge.app.run_secret import read_secret
from tests.harness.run_files import SECRET


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("operator", "container", "spark"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "container")
    monkeypatch.setattr(SparkFiles, "get", lambda name: str(tmp_path / "spark" / name))


@pytest.mark.parametrize("place", ["operator", "container", "spark"], ids=["client", "yarn", "kubernetes"])
def test_it_is_found_where_the_deploy_mode_puts_it(tmp_path: Path, place: str) -> None:
    (tmp_path / place / "run.key").write_bytes(SECRET)
    assert read_secret(str(tmp_path / "operator" / "run.key")) == SECRET


def test_a_key_that_did_not_come_is_told_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="operator/run.key: did not come to the driver"):
        read_secret(str(tmp_path / "operator" / "run.key"))


@pytest.mark.parametrize("content", [b"", SECRET[1:], SECRET + b"x", b"x" * 10_000])
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "operator" / "run.key").write_bytes(content)
    with pytest.raises(ConfigurationError, match="holds no key"):
        read_secret(str(tmp_path / "operator" / "run.key"))


def test_a_place_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "operator" / "run.key").mkdir()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_secret(str(tmp_path / "operator" / "run.key"))
