"""Failures without a death: metastore, database or heartbeat stay away for a while, the disk is full."""

from __future__ import annotations

import signal
from contextlib import closing

import pytest

from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.metastore.values import CompactionState, TxnState
from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.storages.local import LocalStorage
from tests.crash.ending import clean, finish, reap
from tests.crash.metastores import HIVE_3, CrashMetastore, on_its_own_worker
from tests.crash.refusal import check_refusal
from tests.harness.compaction_chain import ChainProcess, wait_until
from tests.harness.crash_case import ITS_END, chain_for
from tests.harness.plain_job import run_plainly
from tests.harness.table_state import TableState

REFUSES_SECONDS = 4.0
"""How long the database refuses connections; a minute in ``soak``."""

ON_HIVE_3 = pytest.mark.parametrize("metastore", [on_its_own_worker(HIVE_3)], indirect=True)


def test_a_metastore_that_crashes_and_comes_back_while_spark_works(state: TableState) -> None:
    def job(plan: CompactionPlan) -> CompactionResult:
        state.server.kill()
        result = run_plainly(plan)
        state.server.start()
        return result

    outcome = chain_for(state).compact(job=job).outcome
    assert outcome.state is OutcomeState.COMPACTED, outcome
    state.check_rows()
    clean(state)


def test_a_metastore_that_is_down_when_spark_has_finished(state: TableState) -> None:
    inputs = state.visible_directories()

    def job(plan: CompactionPlan) -> CompactionResult:
        state.server.kill()
        return run_plainly(plan)

    try:
        assert chain_for(state).compact(job=job).outcome.state is OutcomeState.FAILED
        assert state.directories() == inputs
    finally:
        state.server.start()
    reap(state)
    assert finish(state).state is OutcomeState.COMPACTED


@ON_HIVE_3
@pytest.mark.parametrize("step", [Step.CLAIMED, Step.FENCED, Step.PUBLISHED, Step.CLEANING_DECIDED, Step.FILES_DELETED])
def test_a_database_that_refuses_connections_for_a_while_after_a_step(state: TableState, step: Step) -> None:
    check_refusal(state, step, REFUSES_SECONDS)


@pytest.mark.parametrize("name", ["plan.json", "bucket_00000", "_metadata_acid", "result.json", "replaced.json"])
def test_a_disk_that_is_full_leaves_nothing_behind(
    state: TableState, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state.directories()
    create = LocalStorage.create

    def fail(storage: LocalStorage, path: str) -> object:
        if name in path:
            raise StorageError(path, "no space left on device", "make room")
        return create(storage, path)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "create", fail)
        outcome = chain_for(state).compact().outcome
    if name == "replaced.json" and not state.renames_publish:
        assert outcome.state is OutcomeState.COMPACTED, "Hive 4 needs no such file"
    else:
        assert outcome.state is OutcomeState.FAILED
        assert "no space left on device" in outcome.message
        assert state.directories() == before
        (row,) = state.queue_rows()
        assert row.state is CompactionState.FAILED
        finish(state)


@pytest.mark.parametrize("step", ["claimed", "staged", "verified", "fenced", *ITS_END])
def test_a_heartbeat_that_was_lost_long_enough(
    request: pytest.FixtureRequest, metastore: CrashMetastore, step: str
) -> None:
    """The whole process sleeps until the metastore has aborted its transaction; then it goes on."""
    state = metastore.table.register(metastore.start(request, reaping=True))
    with closing(ChainProcess(chain_for(state), step, signal.SIGSTOP)) as sleeper:
        sleeper.wait_until_asleep()
        wait_until(lambda: not [txn for txn in state.our_transactions() if txn.state is TxnState.OPEN])
        state.check_rows()
        woken = sleeper.wake()
    # On Hive 3 the rename publishes, whatever became of the transaction.
    begins_late = step == "claimed"
    publishes = state.renames_publish and step in ("fenced", "published")
    is_done = step in ("committed", "marked_compacted")
    expected = OutcomeState.COMPACTED if begins_late or publishes or is_done else OutcomeState.FAILED
    assert woken.state is expected, woken
    finish(state)
