"""Connections to the metastore's database that break at the worst moment: around a commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine, make_url

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.steps import Step, StepListener
from airflow_provider_acid.exceptions import AcidError
from tests.crash.ending import finish
from tests.crash.metastores import HIVE_3, on_its_own_worker
from tests.harness.compaction_chain import Chain
from tests.harness.crash_case import chain_for
from tests.harness.metastore_database import ServerDatabase
from tests.harness.network_proxy import NetworkProxy
from tests.harness.table_state import TableState

CHANGES = (Step.ENQUEUED, Step.TRANSACTION_OPENED, Step.PUBLISHED, Step.FILES_DELETED)
"""Before each of these the row is about to be changed: claimed, recorded, completed, moved to history."""

pytestmark = [
    pytest.mark.parametrize("metastore", [on_its_own_worker(HIVE_3)], indirect=True),
    pytest.mark.parametrize("step", CHANGES),
]


def compact_and_clean(chain: Chain, on_step: StepListener) -> None:
    with suppress(AcidError):
        if not chain.compact(on_step).outcome.state.is_failure:
            chain.clean(on_step)


@pytest.mark.parametrize("commits", [False, True], ids=["to the statement", "to the commit"])
def test_an_answer_of_the_database_that_gets_lost(state: TableState, step: Step, commits: bool) -> None:
    """With the answer to the statement the change is lost, with that to the commit it is made."""
    url = make_url(state.server.server_database.url)
    with NetworkProxy(str(url.host), int(url.port or 0)) as proxy:
        behind = url.set(host=proxy.host, port=proxy.port).render_as_string(hide_password=False)
        lost: list[Step] = []

        def lose(passed: Step, _: Entity) -> None:
            if passed is step and not lost:
                lost.append(step)
                change = b"DELETE" if step is Step.FILES_DELETED else b"UPDATE"
                proxy.lose_answer_to(change, *([b"COMMIT"] if commits else []))

        compact_and_clean(replace(chain_for(state), database_url=behind), lose)
    assert lost
    finish(state)


@contextmanager
def terminated_after_a_change(database: ServerDatabase) -> Iterator[list[str]]:
    """The next connection that changes a row is ended by the server before it can commit."""
    terminated: list[str] = []

    def terminate(
        connection: Connection, cursor: Any, statement: str, parameters: object, context: object, many: bool
    ) -> None:
        if not terminated and statement.startswith(("UPDATE", "INSERT", "DELETE")):
            terminated.append(statement)
            pid = connection.connection.dbapi_connection.info.backend_pid  # type: ignore[union-attr]
            database.server.query("postgres", f"SELECT pg_terminate_backend({pid})")

    event.listen(Engine, "after_cursor_execute", terminate)
    try:
        yield terminated
    finally:
        event.remove(Engine, "after_cursor_execute", terminate)


def test_a_connection_that_the_server_ends_between_statement_and_commit(state: TableState, step: Step) -> None:
    with ExitStack() as stack:
        terminated: list[str] | None = None

        def end(passed: Step, _: Entity) -> None:
            nonlocal terminated
            if passed is step and terminated is None:
                terminated = stack.enter_context(terminated_after_a_change(state.server.server_database))

        compact_and_clean(chain_for(state), end)
    assert terminated
    finish(state)
