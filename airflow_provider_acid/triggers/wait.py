"""What all waits in the triggerer have in common: looks in a thread, an absolute deadline, exactly one event."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator
from functools import cached_property
from typing import TypedDict

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from airflow_provider_acid.exceptions import AcidError, MetastoreError
from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook

FAILED_POLLS = 5
"""So many polls in a row may fail before the wait is given up."""

TRIGGER_GRACE_SECONDS = 60.0
"""A trigger ends itself at its deadline; Airflow's own time-out only catches one that does not."""


class WaitEvent(TypedDict):
    """How a wait ended.

    :param state: ``ready``, ``deadline``, ``error``, or ``mistake`` for an error that no other try mends.
    :param message: what was waited for in vain, or the error.
    :param deadline: the wait's, in seconds since 1970, so that the next wait has the same. Not left to the arguments
        that Airflow keeps for the method: ``airflow dags test`` of Airflow 2 drops them.
    """

    state: str
    message: str
    deadline: float


def raise_if_failed(event: WaitEvent) -> None:
    """Fail the task if its wait has failed.

    :raises AirflowFailException: and no other try would mend it.
    :raises AirflowException: and another try may.
    """
    if event["state"] == "mistake":
        raise AirflowFailException(event["message"])
    if event["state"] == "error":
        raise AirflowException(event["message"])


class MetastoreWait(BaseTrigger):
    """Looks at a metastore now and then, until what is waited for is so, or the deadline has passed.

    Between two looks it holds nothing: no connection, claim, transaction or lock. So there is nothing to give back
    when the waiting task is killed, and ``on_kill`` has nothing to do.

    :param hive_acid_conn_id: the metastore's connection.
    :param deadline: absolute time in seconds since 1970.
    :param poll_seconds: time between two looks.
    """

    def __init__(self, hive_acid_conn_id: str, deadline: float, poll_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's has no type hints
        self.hive_acid_conn_id = hive_acid_conn_id
        self.deadline = deadline
        self.poll_seconds = poll_seconds

    @abstractmethod
    def look(self) -> list[str]:
        """What it still waits for, a sentence each; empty as soon as it need not wait any longer.

        Blocks, and runs in a thread of its own, one look at a time.

        :raises MetastoreError: the metastore did not answer; the next look may find it back.
        :raises AcidError: waiting will not mend it.
        """

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield exactly one :class:`WaitEvent`."""
        yield TriggerEvent(await self._wait())  # type: ignore[no-untyped-call]  # Airflow's has no type hints

    async def _wait(self) -> WaitEvent:
        failures = 0
        # One thread serves all triggers' sensitive calls: a slow metastore would hold up every other trigger there.
        look = sync_to_async(self.look, thread_sensitive=False)
        while True:
            # The wait comes first: the operator has just looked, and would else be woken at once again and again.
            await asyncio.sleep(max(min(self.poll_seconds, self.deadline - time.time()), 0))
            try:
                waiting = await look()
                failures = 0
            except AcidError as error:
                failures += 1
                if error.is_permanent:
                    return self._event("mistake", str(error))
                if failures >= FAILED_POLLS or not isinstance(error, MetastoreError):
                    return self._event("error", str(error))
                waiting = [str(error)]
            if not waiting:
                return self._event("ready", "")
            if time.time() >= self.deadline:
                return self._event("deadline", "; ".join(waiting))
            others = f", and {len(waiting) - 1} more wait" if len(waiting) > 1 else ""
            self.log.info("Still waiting: %s%s", waiting[0], others)

    def _event(self, state: str, message: str) -> WaitEvent:
        return {"state": state, "message": message, "deadline": self.deadline}

    @cached_property
    def _endpoint(self) -> MetastoreEndpoint:
        """Kept for the whole wait, as it remembers how the metastore's database spells its tables."""
        return AcidMetastoreHook(self.hive_acid_conn_id).endpoint()
