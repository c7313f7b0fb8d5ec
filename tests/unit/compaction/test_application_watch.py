"""What the application says of itself is told once, while it runs, and nothing that fails there reaches the task."""

from __future__ import annotations

import json
import logging
import threading
import time
from pathlib import Path

import pytest

from airflow_provider_acid.compaction.run.application import watch_application
from airflow_provider_acid.filesystem import Storages

POLL_SECONDS = 0.01
PATIENCE_SECONDS = 30


def say(run: Path, ui_url: str | None) -> None:
    part = run / "application.part"
    part.write_text(json.dumps({"id": "app-1", "ui_url": ui_url}))
    part.rename(run / "application.json")


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "acid-application-watch"]


def wait_for_the_watchers_end() -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while watchers() and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    assert watchers() == []


def test_the_address_is_told_as_soon_as_it_is_known_and_once(tmp_path: Path) -> None:
    told: list[str] = []
    with watch_application(Storages(), str(tmp_path), told.append, POLL_SECONDS):
        assert told == []
        say(tmp_path, "http://driver:4040")
        wait_for_the_watchers_end()
        assert told == ["http://driver:4040"]
    assert told == ["http://driver:4040"]


def test_without_a_user_interface_nothing_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    say(tmp_path, None)
    with watch_application(Storages(), str(tmp_path), told.append, POLL_SECONDS):
        wait_for_the_watchers_end()
    assert told == []


def test_the_watch_ends_with_the_application(tmp_path: Path) -> None:
    told: list[str] = []
    with watch_application(Storages(), str(tmp_path), told.append):
        assert len(watchers()) == 1
    assert (watchers(), told) == ([], [])


def test_what_fails_is_logged_and_the_application_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail(url: str) -> None:
        raise ConnectionError("the API is down")

    say(tmp_path, "http://driver:4040")
    with (
        caplog.at_level(logging.WARNING),
        watch_application(Storages(), str(tmp_path), fail, POLL_SECONDS),
        watch_application(Storages(), f"gs://nowhere/{tmp_path}", fail, POLL_SECONDS),
    ):
        wait_for_the_watchers_end()
    assert "ConnectionError: the API is down" in caplog.text
    assert "gs://nowhere" in caplog.text
