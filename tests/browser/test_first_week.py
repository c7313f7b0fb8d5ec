"""The first week with this package, as somebody has it who is new to it; docs/first-week.md tells it with pictures.

The tests follow each other, on one metastore and one Airflow that has nothing of this tree but its wheel.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_provider_acid.command import DATABASE_VARIABLE, UNWELL, WELL
from tests.browser.conftest import SCREENSHOTS
from tests.browser.planted_faults import CHECKS, PlantedFaults
from tests.browser.terminal import Shown, type_in
from tests.harness.hive_engine_program import hive_4_metastore_program
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_server import MetastoreServer
from tests.harness.postgres_server import PostgresServer
from tests.harness.wheel_environment import ROOT, WheelEnvironment, build_wheel

KEPT = ROOT / ".cache" / "first-week"
"""Of environments, whose bytecode need not be made anew each time."""

KeepTerminal = Callable[[Shown, str], None]


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[MetastoreServer]:
    """Hive 4.0.1 as its default settings leave it: without housekeeping."""
    folder = tmp_path_factory.mktemp("metastore")
    database = ServerDatabase(postgres, "first_week")
    with MetastoreServer(folder, reaper=False, program=hive_4_metastore_program(), database=database) as server:
        yield server


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the user who does all that."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path) -> WheelEnvironment:
    """The wheel in an environment that was empty."""
    KEPT.mkdir(parents=True, exist_ok=True)
    environment = WheelEnvironment(KEPT / "environment")
    assert environment.distributions() == {}
    environment.install(wheel)
    return environment


@pytest.fixture(scope="session")
def keep_terminal() -> KeepTerminal:
    """As ``screenshot``, for what was typed into a terminal."""

    def keep(shown: Shown, name: str) -> None:
        if os.environ.get("SCREENSHOTS"):
            shown.keep(SCREENSHOTS / f"{name}.svg", shown.command.split()[0])

    return keep


def doctor(
    installed: WheelEnvironment, server: MetastoreServer, home: Path, patterns: tuple[str, ...], *more: str
) -> Shown:
    tables = [part for pattern in patterns for part in ("--tables", pattern)]
    environment = {**os.environ, "HOME": str(home), DATABASE_VARIABLE: server.server_database.url}
    return type_in(installed.programs, ["airflow-acid", "doctor", server.uri, *tables, *more], environment, home)


def named(shown: Shown) -> dict[str, str]:
    """The checks that found something, and how bad that is."""
    findings = json.loads(shown.colored)["findings"]
    return {finding["check"]: finding["severity"] for finding in findings if finding["severity"] != "ok"}


def test_monday_the_doctor_names_twelve_faults_and_none_of_them_once_they_are_mended(
    installed: WheelEnvironment, metastore: MetastoreServer, home: Path, keep_terminal: KeepTerminal
) -> None:
    faults = PlantedFaults(metastore, home)
    faults.plant()
    shown = doctor(installed, metastore, home, faults.patterns)
    assert shown.code == UNWELL, shown.text
    for check, severity in CHECKS.items():
        assert f" {severity} {check} " in shown.text
    assert len(CHECKS) == 12
    assert named(doctor(installed, metastore, home, faults.patterns, "--json")) == CHECKS
    keep_terminal(shown, "week-doctor")
    faults.mend()
    shown = doctor(installed, metastore, home, faults.patterns, "--json")
    assert (shown.code, named(shown)) == (WELL, {})
