"""Waits until merged directories can be cleaned."""

from __future__ import annotations

from typing import Any

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.acid.json_fields import read_as
from airflow_provider_acid.compaction.clean.cleaner import Cleaner
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.config import configured_settings
from airflow_provider_acid.triggers.wait import MetastoreWait


class CleaningTrigger(MetastoreWait):
    """Fires when at least one of the partitions can be cleaned, or when the deadline has passed.

    :param partitions: objects with database, table and partition.
    :param deadline: absolute time in seconds since 1970.
    :param poll_seconds: time between two looks.
    :param cleaner_retention_seconds: the option; None for that of ``[hive_acid]``.
    """

    def __init__(
        self,
        hive_acid_conn_id: str,
        partitions: list[dict[str, Any]],
        deadline: float,
        poll_seconds: float,
        cleaner_retention_seconds: float | None = None,
    ) -> None:
        super().__init__(hive_acid_conn_id, deadline, poll_seconds)
        self.partitions = partitions
        self.cleaner_retention_seconds = cleaner_retention_seconds
        self._checked: Hive | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and its arguments, as plain JSON values."""
        return (
            "airflow_provider_acid.triggers.cleaner.CleaningTrigger",
            {
                "hive_acid_conn_id": self.hive_acid_conn_id,
                "partitions": self.partitions,
                "deadline": self.deadline,
                "poll_seconds": self.poll_seconds,
                "cleaner_retention_seconds": self.cleaner_retention_seconds,
            },
        )

    def look(self) -> list[str]:
        """What the partitions wait for; empty as soon as one of them can be cleaned, or nothing at all is left to.

        On Hive 3.1 this also keeps the claims of the rows that wait from being taken back as forgotten.
        """
        settings = configured_settings(cleaner_retention_seconds=self.cleaner_retention_seconds)
        # One check is enough for a wait that does not fail: the operator, which deletes, makes its own.
        checked, self._checked = self._checked, None
        with self._endpoint.open() as client:
            checked = checked or self._endpoint.check(client)
            cleaner = Cleaner(client, self._endpoint.open_queue(client, checked), settings)
            found = cleaner.look([read_as(Entity, item) for item in self.partitions])
        self._checked = checked
        if any(cleaning.state is CleaningState.READY for cleaning in found):
            return []
        waiting = [cleaning for cleaning in found if cleaning.state is CleaningState.WAITING]
        return [f"{cleaning.entity} {cleaning.message}" for cleaning in waiting]
