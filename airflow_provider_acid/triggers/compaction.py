"""Waits until partitions are due for compaction."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from airflow_provider_acid.compaction.evaluate.initiator import Initiator
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.config import configured_settings
from airflow_provider_acid.parameters import as_time_window
from airflow_provider_acid.triggers.wait import MetastoreWait


class DuePartitionsTrigger(MetastoreWait):
    """Fires when at least one partition of the tables is due, or when the deadline has passed.

    It does not say which: the sensor evaluates again in its worker, so that the event stays small however many are due,
    and nothing is handed on that was compacted while the sensor waited for a worker.

    :param tables: patterns of tables.
    :param exclude: patterns of tables to leave out.
    :param question: what makes a partition due: options by name.
    :param deadline: absolute time in seconds since 1970.
    :param poll_seconds: time between two looks.
    :param time_window: hours in which it may fire, and looks; None for all.
    :param time_zone: of ``time_window``.
    """

    def __init__(
        self,
        hive_acid_conn_id: str,
        tables: list[str],
        exclude: list[str],
        question: dict[str, Any],
        deadline: float,
        poll_seconds: float,
        time_window: str | None = None,
        time_zone: str = "UTC",
    ) -> None:
        super().__init__(hive_acid_conn_id, deadline, poll_seconds)
        self.tables = tables
        self.exclude = exclude
        self.question = question
        self.time_window = time_window
        self.time_zone = time_zone

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and its arguments, as plain JSON values."""
        return (
            "airflow_provider_acid.triggers.compaction.DuePartitionsTrigger",
            {
                "hive_acid_conn_id": self.hive_acid_conn_id,
                "tables": self.tables,
                "exclude": self.exclude,
                "question": self.question,
                "deadline": self.deadline,
                "poll_seconds": self.poll_seconds,
                "time_window": self.time_window,
                "time_zone": self.time_zone,
            },
        )

    def look(self) -> list[str]:
        """That nothing is due; empty as soon as something is. One look evaluates all tables.

        Errors as for :meth:`Initiator.evaluate`, and :class:`ConfigurationError`: a parameter cannot be used.
        """
        hours = as_time_window("time_window", self.time_window, self.time_zone)
        closed = None if hours is None else hours.why_closed(time.time())
        if closed is not None:
            return [closed]
        selection = TableSelection.of(self.tables, self.exclude)
        settings = replace(configured_settings(**self.question), storages=self._endpoint.storages)
        with self._endpoint.connect() as (client, queue):
            evaluation = Initiator(client, queue, settings, self._endpoint.write_records).evaluate(selection)
        if evaluation.due:
            return []
        return [f"none of {len(evaluation.evaluated)} partitions is due"]
