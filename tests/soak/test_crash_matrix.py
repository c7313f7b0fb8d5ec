"""The full crash matrix: every step, every kind of table, every kind of successor, with and without reaper."""

from __future__ import annotations

import itertools

import pytest

from tests.harness.crash_case import STEPS, check_another_run, check_another_run_with_reaper, check_next_try
from tests.harness.metastore_server import MetastoreServer
from tests.harness.table_state import TableState
from tests.soak.conftest import REAPER_SECONDS

TABLES = [
    ("4.0.1", "acid_plain", None),
    ("4.0.1", "acid_abort", None),
    ("4.0.1", "acid_buck", None),
    ("4.0.1", "acid_part", "p=x/q=1"),
    ("3.1.3", "a_merge", None),
    ("3.1.3", "a_abort", None),
]
DATABASES = (f"crash_matrix_{number}" for number in itertools.count())

pytestmark = [
    pytest.mark.parametrize("step", STEPS),
    pytest.mark.parametrize(("version", "name", "partition"), TABLES),
]


def table(server: MetastoreServer, version: str, name: str, partition: str | None) -> TableState:
    return TableState.of(server, name, next(DATABASES), partition, version)


def test_next_try(metastore: MetastoreServer, version: str, name: str, partition: str | None, step: str) -> None:
    check_next_try(table(metastore, version, name, partition), step)


def test_another_run(metastore: MetastoreServer, version: str, name: str, partition: str | None, step: str) -> None:
    check_another_run(table(metastore, version, name, partition), step)


def test_another_run_with_reaper(
    reaping_metastore: MetastoreServer, version: str, name: str, partition: str | None, step: str
) -> None:
    state = table(reaping_metastore, version, name, partition)
    check_another_run_with_reaper(state, step, REAPER_SECONDS)


def test_next_try_with_reaper(
    reaping_metastore: MetastoreServer, version: str, name: str, partition: str | None, step: str
) -> None:
    check_next_try(table(reaping_metastore, version, name, partition), step)
