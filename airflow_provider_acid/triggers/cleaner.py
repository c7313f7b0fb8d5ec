"""Waits until merged directories can be cleaned."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import cached_property
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.cleaner import Cleaner, CleaningState
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.config import configured_settings
from airflow_provider_acid.exceptions import AcidError, MetastoreError
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook, MetastoreEndpoint
from airflow_provider_acid.metastore.client import MetastoreFacts

FAILED_POLLS = 5
"""So many polls in a row may fail before the wait is given up."""


class CleaningTrigger(BaseTrigger):
    """Fires when at least one of the partitions can be cleaned, or when the deadline has passed.

    :param partitions: objects with database, table and partition.
    :param deadline: absolute time in seconds since 1970.
    :param poll_seconds: time between two looks.
    :param retention_seconds: how long obsolete directories are kept; None for ``[hive_acid] cleaner_retention_time``.
    """

    def __init__(
        self,
        hive_acid_conn_id: str,
        partitions: list[dict[str, Any]],
        deadline: float,
        poll_seconds: float,
        retention_seconds: float | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's has no type hints
        self.hive_acid_conn_id = hive_acid_conn_id
        self.partitions = partitions
        self.deadline = deadline
        self.poll_seconds = poll_seconds
        self.retention_seconds = retention_seconds
        self._checked: MetastoreFacts | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and its arguments, as plain JSON values."""
        return (
            "airflow_provider_acid.triggers.cleaner.CleaningTrigger",
            {
                "hive_acid_conn_id": self.hive_acid_conn_id,
                "partitions": self.partitions,
                "deadline": self.deadline,
                "poll_seconds": self.poll_seconds,
                "retention_seconds": self.retention_seconds,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield exactly one event: ``{"state": "ready" | "deadline" | "error", "message": …}``."""
        yield TriggerEvent(await self._wait())  # type: ignore[no-untyped-call]  # Airflow's has no type hints

    async def _wait(self) -> dict[str, str]:
        failures = 0
        while True:
            # The wait comes first: the operator has just looked, and would else be woken at once again and again.
            await asyncio.sleep(max(min(self.poll_seconds, self.deadline - time.time()), 0))
            try:
                waiting = await sync_to_async(self.look)()
                failures = 0
            except MetastoreError as error:
                failures += 1
                if failures >= FAILED_POLLS:
                    return {"state": "error", "message": str(error)}
                waiting = [str(error)]
            except AcidError as error:
                return {"state": "error", "message": str(error)}
            if not waiting:
                return {"state": "ready", "message": ""}
            if time.time() >= self.deadline:
                return {"state": "deadline", "message": "; ".join(waiting)}
            others = f", and {len(waiting) - 1} more wait" if len(waiting) > 1 else ""
            self.log.info("Cleaning: %s%s", waiting[0], others)

    @cached_property
    def _endpoint(self) -> MetastoreEndpoint:
        """Kept for the whole wait, as it remembers how the metastore's database spells its tables."""
        return AcidMetastoreHook(self.hive_acid_conn_id).endpoint()

    def look(self) -> list[str]:
        """What the partitions wait for; empty as soon as one of them can be cleaned, or nothing at all is left to.

        On Hive 3.1 this also keeps the claims of the rows that wait from being taken back as forgotten.
        """
        settings = cleaning_settings(self.retention_seconds)
        # One check is enough for a wait that does not fail: the operator, which deletes, makes its own.
        checked, self._checked = self._checked, None
        with self._endpoint.open() as client:
            checked = checked or self._endpoint.check(client)
            cleaner = Cleaner(client, self._endpoint.open_queue(client, checked), settings)
            found = cleaner.look([Entity.from_json(item) for item in self.partitions])
        self._checked = checked
        if any(cleaning.state is CleaningState.READY for cleaning in found):
            return []
        return [f"{cleaning.entity} {cleaning.message}" for cleaning in found]


def cleaning_settings(retention_seconds: float | None) -> CompactionSettings:
    """The configured settings, with another retention time where one is given."""
    settings = configured_settings()
    return settings if retention_seconds is None else replace(settings, retention_seconds=retention_seconds)
