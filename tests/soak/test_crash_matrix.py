"""The full crash matrix: step, type, kind of table, kind of successor; with and without reaper."""

from __future__ import annotations

import itertools

import pytest

from airflow_provider_acid.acid.plan import CompactionType
from tests.harness.crash_case import PAIR_STEPS, STEPS, check_another_run, check_another_run_with_reaper, check_next_try
from tests.harness.metastore_server import REAPER_SECONDS, MetastoreServer
from tests.harness.table_state import TableState

MAJOR, MINOR = CompactionType.MAJOR, CompactionType.MINOR
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
    pytest.mark.parametrize(
        ("type", "step"), [*((MAJOR, step) for step in STEPS), *((MINOR, step) for step in PAIR_STEPS)]
    ),
    pytest.mark.parametrize(("version", "name", "partition"), TABLES),
]


def table(server: MetastoreServer, version: str, name: str, partition: str | None) -> TableState:
    return TableState.of(server, name, next(DATABASES), partition, version)


def test_next_try(
    metastore: MetastoreServer, version: str, name: str, partition: str | None, type: CompactionType, step: str
) -> None:
    check_next_try(table(metastore, version, name, partition), step, type)


def test_another_run(
    metastore: MetastoreServer, version: str, name: str, partition: str | None, type: CompactionType, step: str
) -> None:
    check_another_run(table(metastore, version, name, partition), step, type)


def test_another_run_with_reaper(
    reaping_metastore: MetastoreServer, version: str, name: str, partition: str | None, type: CompactionType, step: str
) -> None:
    state = table(reaping_metastore, version, name, partition)
    check_another_run_with_reaper(state, step, REAPER_SECONDS, type)


def test_next_try_with_reaper(
    reaping_metastore: MetastoreServer, version: str, name: str, partition: str | None, type: CompactionType, step: str
) -> None:
    check_next_try(table(reaping_metastore, version, name, partition), step, type)
