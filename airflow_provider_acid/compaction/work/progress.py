"""Progress of a batch as a few log lines: one per partition that begins or ends, and now and then how far it is."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.outcomes import Outcome
from airflow_provider_acid.compaction.quantities import human_bytes, time_left
from airflow_provider_acid.plan.plan import CompactionPlan

log = logging.getLogger(__name__)

LINE_SECONDS = 15.0
"""Time between two lines about one partition, and between two about the batch."""


@dataclass
class _Begun:
    input_bytes: int
    seconds: float
    said_seconds: float


class Progress:
    """Remembers when each partition began and logs how far it, and the batch, is.

    :param partitions: how many the batch has.
    """

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._begun: dict[Entity, _Begun] = {}
        self._begun_seconds = self._said_seconds = time.monotonic()
        self._ended = 0
        self._merged_bytes = 0

    def began(self, plan: CompactionPlan) -> None:
        """A partition was handed to the Spark application."""
        now = time.monotonic()
        self._begun[plan.entity] = _Begun(plan.input_bytes, now, now)
        log.info("%s: merging %s, %s", plan.entity, human_bytes(plan.input_bytes), plan.reason)

    def advanced(self, entity: Entity, bytes_done: int) -> None:
        """The application read so many bytes of a partition."""
        begun, now = self._begun[entity], time.monotonic()
        if now - begun.said_seconds < LINE_SECONDS:
            return
        begun.said_seconds = now
        seconds = now - begun.seconds
        log.info(
            "%s: merging, %s of %s, %s/s, %s",
            entity,
            human_bytes(bytes_done),
            human_bytes(begun.input_bytes),
            human_bytes(bytes_done / seconds),
            time_left(bytes_done, begun.input_bytes, seconds),
        )

    def ended(self, outcome: Outcome) -> None:
        """A partition is done with, one way or the other."""
        level = logging.ERROR if outcome.state.is_failure else logging.INFO
        log.log(level, "%s: %s: %s", outcome.entity, outcome.state.value, outcome.message)
        self._ended += 1
        self._merged_bytes += outcome.bytes_before
        now = time.monotonic()
        if now - self._said_seconds < LINE_SECONDS or self._ended == self._partitions:
            return
        self._said_seconds = now
        seconds = now - self._begun_seconds
        log.info(
            "%d of %d partitions done, %s merged, %s/s, %s",
            self._ended,
            self._partitions,
            human_bytes(self._merged_bytes),
            human_bytes(self._merged_bytes / seconds),
            time_left(self._ended, self._partitions, seconds),
        )
