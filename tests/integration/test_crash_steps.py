"""Killed by SIGKILL right after any step, the chain run again ends as if it had never been disturbed."""

from __future__ import annotations

import itertools

import pytest

from tests.harness.crash_case import (
    STEPS,
    check_another_run,
    check_another_run_with_reaper,
    check_next_try,
)
from tests.harness.metastore_server import REAPER_SECONDS, MetastoreServer
from tests.harness.table_state import TableState

STEPS_WITH_REAPER = ("claimed", "transaction_opened", "recorded", "published", "marked_compacted", "files_deleted")
"""Every state of row and transaction that the metastore's reaper can find; the full product runs in ``soak``."""

DATABASES = (f"crash_steps_{number}" for number in itertools.count())


@pytest.mark.parametrize("step", STEPS)
def test_the_next_try_of_the_same_task_finishes(metastore: MetastoreServer, step: str) -> None:
    check_next_try(TableState.of(metastore, "acid_abort", next(DATABASES)), step)


@pytest.mark.parametrize("step", STEPS)
def test_another_run_waits_for_a_living_attempt_and_finishes_a_dead_one(metastore: MetastoreServer, step: str) -> None:
    check_another_run(TableState.of(metastore, "acid_part", next(DATABASES), "p=x/q=1"), step)


@pytest.mark.parametrize("step", STEPS_WITH_REAPER)
def test_another_run_finishes_after_the_metastore_aborted_the_dead_transaction(
    reaping_metastore: MetastoreServer, step: str
) -> None:
    state = TableState.of(reaping_metastore, "acid_abort", next(DATABASES))
    check_another_run_with_reaper(state, step, REAPER_SECONDS)
