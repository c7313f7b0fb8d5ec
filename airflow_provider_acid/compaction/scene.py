"""What recovery has found about one partition, and who asks."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.attempts import Attempts
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.values import CompactionRow

DIED = "an attempt died"
"""How the messages begin with which rows of dead attempts are failed; they are not the partition's fault."""


@dataclass(frozen=True)
class Scene:
    """One partition at the moment of a recovery.

    :param own: the asking attempt; of a cleaner, which is none, a name that nobody else has.
    :param owner: the asking task, whose former tries are dead; None where nobody's are known to be.
    """

    entity: Entity
    storage: Storage
    attempts: Attempts
    own: RequestPool
    owner: str | None


def busy(row: CompactionRow, reason: str) -> Outcome:
    """The outcome where a partition is left alone for now."""
    return Outcome(row.entity, OutcomeState.SKIPPED, f"{row.entity} {reason}", row.id)
