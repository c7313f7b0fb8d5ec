"""However a try ended, the next one and the cleaner bring the table to the end of an undisturbed run."""

from __future__ import annotations

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import Outcome
from airflow_provider_acid.metastore.values import TxnState
from tests.harness.compaction_chain import wait_until
from tests.harness.crash_case import CrashCase, Kind, chain_for
from tests.harness.table_state import TableState
from tests.harness.thrift_admin import ThriftAdmin


def reap(state: TableState) -> None:
    """What the metastore does by itself after five minutes: end transactions that nobody could end during an outage.

    They hold up no compaction, only cleanings.
    """
    with ThriftAdmin(state.server.host, state.server.port) as admin:
        for txn in state.our_transactions():
            if txn.state is TxnState.OPEN:
                admin.abort(txn.id)


def finish(state: TableState) -> Outcome:
    """The next try and the cleaning of a major, with all that must hold; what came of the try."""
    state.check_rows()
    chain = chain_for(state)
    with state.watched():
        outcome = chain.compact().outcome
        assert not outcome.state.is_failure, outcome
        state.check_rows()
        clean(state)
    return outcome


def clean(state: TableState) -> None:
    """Until nothing waits any more."""
    chain = chain_for(state)
    wait_until(lambda: all(item.state is CleaningState.CLEANED for item in chain.clean()))
    state.check_finished(CrashCase(state, Kind.MAJOR, "", "").undisturbed_result)
