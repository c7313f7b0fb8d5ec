"""Waits until merged directories can be cleaned."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from airflow_provider_acid.compaction.cleaner import Cleaner, Cleaning, CleaningState
from airflow_provider_acid.compaction.outcomes import entity_from_json
from airflow_provider_acid.config import configured_settings
from airflow_provider_acid.exceptions import MetastoreError
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.metastore.thrift_queue import ThriftCompactionQueue

FAILED_POLLS = 5
"""So many polls in a row may fail before the wait is given up."""


class CleaningTrigger(BaseTrigger):
    """Fires when at least one of the partitions can be cleaned, or when the deadline has passed.

    :param partitions: objects with database, table and partition.
    :param deadline: absolute time in seconds since 1970.
    :param poll_seconds: time between two looks.
    """

    def __init__(
        self, hive_acid_conn_id: str, partitions: list[dict[str, Any]], deadline: float, poll_seconds: float
    ) -> None:
        super().__init__()
        self.hive_acid_conn_id = hive_acid_conn_id
        self.partitions = partitions
        self.deadline = deadline
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and its arguments, as plain JSON values."""
        return (
            "airflow_provider_acid.triggers.cleaner.CleaningTrigger",
            {
                "hive_acid_conn_id": self.hive_acid_conn_id,
                "partitions": self.partitions,
                "deadline": self.deadline,
                "poll_seconds": self.poll_seconds,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield exactly one event: ``{"state": "ready" | "deadline" | "error", "message": …}``."""
        yield TriggerEvent(await self._wait())

    async def _wait(self) -> dict[str, str]:
        failures = 0
        while True:
            try:
                waiting = await sync_to_async(self.look)()
                failures = 0
            except MetastoreError as error:
                failures += 1
                if failures >= FAILED_POLLS:
                    return {"state": "error", "message": str(error)}
                waiting = [str(error)]
            if not waiting:
                return {"state": "ready", "message": ""}
            if time.time() >= self.deadline:
                return {"state": "deadline", "message": "; ".join(waiting)}
            self.log.info("Cleaning waits: %s", "; ".join(waiting))
            await asyncio.sleep(self.poll_seconds)

    def look(self) -> list[str]:
        """What the partitions wait for; empty as soon as one of them, or nothing at all, is left to clean."""
        with AcidMetastoreHook(self.hive_acid_conn_id).get_conn() as client:
            cleaner = Cleaner(client, ThriftCompactionQueue(client), configured_settings())
            found: tuple[Cleaning, ...] = cleaner.look([entity_from_json(item) for item in self.partitions])
        if any(cleaning.state is CleaningState.READY for cleaning in found):
            return []
        return [f"{cleaning.entity} {cleaning.message}" for cleaning in found]
