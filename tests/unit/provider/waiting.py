"""Time that tests of waits let pass, and the events of a trigger."""

from __future__ import annotations

import asyncio
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_acid.triggers.wait import WaitEvent

NOW = 1_000_000.0


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.seconds = NOW
        self.naps: list[float] = []

    def time(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.seconds += seconds

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds)


def events(of: BaseTrigger) -> list[Any]:
    """The payloads of all events that a trigger yields until it ends."""

    async def collect() -> list[TriggerEvent]:
        return [event async for event in of.run()]

    return [event.payload for event in asyncio.run(collect())]


def ended(state: str, message: str = "", after: float = 100.0) -> WaitEvent:
    """The event of a wait whose deadline was so many seconds after :data:`NOW`."""
    return {"state": state, "message": message, "deadline": NOW + after}
