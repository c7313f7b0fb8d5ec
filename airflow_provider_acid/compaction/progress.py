"""Progress of a batch as a few log lines: one per partition that begins, advances or ends."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.plan import CompactionPlan
from airflow_provider_acid.compaction.outcomes import Outcome

log = logging.getLogger(__name__)


def human_bytes(count: float) -> str:
    """A byte count for people: ``512 B``, ``1.5 KiB``, ``12.0 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


@dataclass(frozen=True)
class _Begun:
    input_bytes: int
    seconds: float


class Progress:
    """Remembers when each partition began and logs how far it is."""

    def __init__(self) -> None:
        self._begun: dict[Entity, _Begun] = {}

    def began(self, plan: CompactionPlan) -> None:
        """A partition was handed to the Spark application."""
        self._begun[plan.entity] = _Begun(plan.input_bytes, time.monotonic())
        log.info("%s: merging %s, %s", plan.entity, human_bytes(plan.input_bytes), plan.reason)

    def advanced(self, entity: Entity, bytes_done: int) -> None:
        """The application read so many bytes of a partition."""
        begun = self._begun[entity]
        rate = bytes_done / max(time.monotonic() - begun.seconds, 0.001)
        log.info(
            "%s: merging %s of %s, %s/s",
            entity,
            human_bytes(bytes_done),
            human_bytes(begun.input_bytes),
            human_bytes(rate),
        )

    def ended(self, outcome: Outcome) -> None:
        """A partition is done with, one way or the other."""
        level = logging.ERROR if outcome.state.is_failure else logging.INFO
        log.log(level, "%s: %s: %s", outcome.entity, outcome.state.value, outcome.message)
