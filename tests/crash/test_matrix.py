"""Killed by SIGKILL right after any step, the chain run again ends as if it had never been disturbed.

All steps for the next try of the same task; for other successors those that leave them something of their own to
judge. Every step for everybody, on more tables, is in ``soak``.
"""

from __future__ import annotations

import pytest

from tests.crash.metastores import HIVE_3, THE_HIVE_4, CrashMetastore, on_its_own_worker
from tests.harness.crash_case import (
    AROUND_THE_PAIR,
    STEPS,
    STEPS_WITH_REAPER,
    Kind,
    check_another_run,
    check_another_run_after_reaper,
    check_next_try,
)
from tests.harness.metastore_server import REAPER_SECONDS

NEXT_TRY = [(kind, step) for kind in (Kind.MAJOR, Kind.MINOR) for step in kind.steps]
ANOTHER_RUN = [*((Kind.MAJOR, step) for step in STEPS), *((Kind.MINOR, step) for step in AROUND_THE_PAIR)]
AFTER_REAPER = [
    *((Kind.MAJOR, step) for step in STEPS_WITH_REAPER),
    *((Kind.MINOR, step) for step in AROUND_THE_PAIR),
]
ON_HIVE_3_A_MAJOR = [(Kind.MINOR_AS_MAJOR, step) for step in ("fenced", "published", "marked_compacted")]


def on_both(cases: list[tuple[Kind, str]], *, reaping: bool = False) -> pytest.MarkDecorator:
    parameters = [
        on_its_own_worker(metastore, kind, step, id=f"-{kind.value}-{step}", reaping=reaping)
        for metastore in (THE_HIVE_4, HIVE_3)
        for kind, step in (*cases, *(ON_HIVE_3_A_MAJOR if metastore is HIVE_3 else ()))
    ]
    return pytest.mark.parametrize(("metastore", "kind", "step"), parameters)


@on_both(NEXT_TRY)
def test_the_next_try_of_the_same_task_finishes(
    request: pytest.FixtureRequest, metastore: CrashMetastore, kind: Kind, step: str
) -> None:
    check_next_try(metastore.case(request, metastore.table, kind, step))


@on_both(ANOTHER_RUN)
def test_another_run_waits_for_a_living_attempt_and_finishes_a_dead_one(
    request: pytest.FixtureRequest, metastore: CrashMetastore, kind: Kind, step: str
) -> None:
    check_another_run(metastore.case(request, metastore.partitioned, kind, step))


@on_both(AFTER_REAPER, reaping=True)
def test_another_run_finishes_after_the_metastore_aborted_the_dead_transaction(
    request: pytest.FixtureRequest, metastore: CrashMetastore, kind: Kind, step: str
) -> None:
    case = metastore.case(request, metastore.table, kind, step, reaping=True)
    check_another_run_after_reaper(case, REAPER_SECONDS)
