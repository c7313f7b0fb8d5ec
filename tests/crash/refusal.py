"""A PostgreSQL that refuses connections for a while, to the compaction and to the metastore itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from thrift.Thrift import TException

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.exceptions import AcidError
from tests.crash.ending import finish, reap
from tests.harness.compaction_chain import wait_until
from tests.harness.crash_case import chain_for
from tests.harness.metastore_database import ServerDatabase
from tests.harness.table_state import TableState


@contextmanager
def refusing(database: ServerDatabase, seconds: float) -> Iterator[None]:
    """From now on, for so long, the database lets nobody in and has thrown everybody out, the metastore too."""
    name = database.name
    for statement in (
        f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false',
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
    ):
        database.server.query("postgres", statement)

    def allow() -> None:
        database.server.query("postgres", f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')

    timer = threading.Timer(seconds, allow)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def check_refusal(state: TableState, step: Step, seconds: float) -> None:
    """The outcome may be a failure, never a wrong table; the next try ends it."""
    chain, snapshot = chain_for(state), state.snapshot()
    with ExitStack() as stack:
        refused: list[Step] = []

        def refuse(passed: Step, _: Entity) -> None:
            if passed is step and not refused:
                refused.append(step)
                stack.enter_context(refusing(state.server.server_database, seconds))

        with suppress(AcidError):
            if not chain.compact(refuse).outcome.state.is_failure:
                chain.clean(refuse)
        state.check_rows_of(snapshot)
    assert refused
    wait_until(lambda: answers(state))
    reap(state)
    finish(state)


def answers(state: TableState) -> bool:
    """Whether the metastore works with its database again."""
    try:
        state.snapshot()
        state.queue_rows()
    except (AcidError, TException):
        return False
    return True
