"""Two operators on one partition at once, from the beginning or as heirs of a dead one."""

from __future__ import annotations

import signal
from contextlib import closing
from dataclasses import replace

import pytest

from airflow_provider_acid.compaction.outcomes import OutcomeState
from tests.crash.ending import finish
from tests.harness.compaction_chain import ChainProcess, run_until_killed
from tests.harness.crash_case import DEAD_AT_ONCE, ITS_END, chain_for
from tests.harness.table_state import TableState

NEVER = "no such step"


def test_of_two_that_begin_at_once_one_compacts_and_no_other_fails(state: TableState) -> None:
    chains = [replace(chain_for(state), identity=f"dag/run/{name}") for name in ("one", "other")]
    with (
        closing(ChainProcess(chains[0], NEVER, signal.SIGKILL)) as one,
        closing(ChainProcess(chains[1], NEVER, signal.SIGKILL)) as other,
    ):
        states = {one.outcome().state, other.outcome().state}
    assert OutcomeState.COMPACTED in states
    assert states <= {OutcomeState.COMPACTED, OutcomeState.SKIPPED, OutcomeState.NOTHING_TO_MERGE}
    finish(state)


@pytest.mark.parametrize("step", ["claimed", "recorded", "verified", *ITS_END])
def test_two_heirs_at_once_do_no_harm(state: TableState, step: str) -> None:
    """Each takes the other for dead as well, which no real run does at once: the worst that two can do."""
    run_until_killed(chain_for(state), step)
    heirs = [
        replace(chain_for(state).with_timeout(DEAD_AT_ONCE), identity=f"dag/next run/{name}")
        for name in ("one", "other")
    ]
    with (
        closing(ChainProcess(heirs[0], NEVER, signal.SIGKILL)) as one,
        closing(ChainProcess(heirs[1], NEVER, signal.SIGKILL)) as other,
    ):
        one.outcome()
        other.outcome()
    finish(state)
