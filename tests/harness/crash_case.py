"""One case of the crash matrix: die after a step, look, run again, compare with the undisturbed end."""

from __future__ import annotations

from airflow_provider_acid.acid.plan import CompactionType
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.steps import Step
from tests.harness.compaction_chain import MERGED, Chain, run_until_killed, wait_until
from tests.harness.table_state import TableState
from tests.harness.thrift_admin import ThriftAdmin

LOCK_WAIT_SECONDS = 10.0
PAIR_STEPS = [step.value for step in Step]
"""Of a minor compaction that makes two directories."""

PAIR_STEPS.insert(PAIR_STEPS.index(Step.VERIFIED.value), MERGED)
ONLY_PAIR_STEPS = frozenset(
    step.value for step in (Step.EXCLUSIVE_LOCK_ASKED, Step.EXCLUSIVE_LOCK_HELD, Step.JOURNALLED, Step.FIRST_PUBLISHED)
)
STEPS = [step for step in PAIR_STEPS if step not in ONLY_PAIR_STEPS]
"""Of a compaction that makes one directory."""

COMMITTED_STEPS = frozenset(STEPS[STEPS.index(Step.COMMITTED.value) :])
"""After these the compaction itself is done; only tidying and cleaning are left."""

OWNED_STEPS = tuple(STEPS[STEPS.index(Step.ENQUEUED.value) : STEPS.index(Step.COMMITTED.value)])
"""After these the queue shows an attempt that may be alive."""


def chain_for(state: TableState, type: CompactionType = CompactionType.MAJOR) -> Chain:
    """The chain that compacts a table's partition."""
    settings = CompactionSettings(publish_lock_wait_seconds=LOCK_WAIT_SECONDS)
    return Chain(state.server.host, state.server.port, state.entity, "dag/run/task", settings, type=type)


def check_next_try(state: TableState, step: str, type: CompactionType = CompactionType.MAJOR) -> Outcome:
    """The same task tried again, at once, finishes what its dead try began."""
    chain = chain_for(state, type)
    inputs = state.visible_directories()
    run_until_killed(chain, step)
    state.check_rows()
    return _finish(state, chain.next_try(), step, inputs)


def check_another_run(state: TableState, step: str, type: CompactionType = CompactionType.MAJOR) -> Outcome:
    """Another run leaves the attempt alone while it may be alive, and finishes its work once it cannot be."""
    chain = chain_for(state, type)
    inputs = state.visible_directories()
    run_until_killed(chain, step)
    state.check_rows()
    if step in (*OWNED_STEPS, *ONLY_PAIR_STEPS):
        before = state.directories()
        outcome = chain.another_run().with_timeout(300).compact().outcome
        assert outcome.state is OutcomeState.SKIPPED, outcome
        assert outcome.request_id is not None
        assert state.directories() == before
    return _finish(state, chain.another_run().with_timeout(0.001), step, inputs)


def check_another_run_with_reaper(
    state: TableState, step: str, timeout_seconds: float, type: CompactionType = CompactionType.MAJOR
) -> Outcome:
    """The metastore aborts the dead transaction by itself; later runs of the DAG finish the work.

    From the moment at which it aborts a half-published minor until the next run, readers that ignore transactions see
    half of it: that is what no order of steps can prevent.
    """
    chain = chain_for(state, type)
    run_until_killed(chain, step)
    state.check_rows(trino=step != Step.FIRST_PUBLISHED.value)
    outcomes: list[Outcome] = []

    def is_done() -> bool:
        outcomes.append(chain.another_run().with_timeout(timeout_seconds).compact().outcome)
        return outcomes[-1].state is not OutcomeState.SKIPPED or step in COMMITTED_STEPS

    wait_until(is_done)
    _check_success(outcomes[-1], step)
    state.check_rows()
    chain.another_run().clean()
    state.check_finished(type)
    return outcomes[-1]


def _finish(state: TableState, chain: Chain, step: str, inputs: set[str]) -> Outcome:
    with ThriftAdmin(state.server.host, state.server.port) as admin:
        (reader,) = admin.open_transactions()
        outcome = chain.compact().outcome
        _check_success(outcome, step)
        state.check_rows()
        chain.clean()
        if step not in COMMITTED_STEPS:
            assert inputs <= state.visible_directories(), "deleted although a reader may need it"
        admin.commit(reader)
    state.check_rows()
    chain.clean()
    state.check_finished(chain.type)
    return outcome


def _check_success(outcome: Outcome, step: str) -> None:
    assert outcome.state is OutcomeState.COMPACTED or step in COMMITTED_STEPS, outcome
    assert not outcome.state.is_failure, outcome
