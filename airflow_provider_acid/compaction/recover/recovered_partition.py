"""What recovery has found about one partition, and who asks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.recover.attempts import Attempts
from airflow_provider_acid.exceptions import OwnershipLostError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.values import CompactionRow

log = logging.getLogger(__name__)

DIED = "an attempt died"
"""How the messages begin with which rows of dead attempts are failed; they are not the partition's fault."""

EndRow = Callable[[CompactionRow, str], None]
"""How the request of a dead attempt ends: fails, or goes back into the queue."""


@dataclass(frozen=True)
class RecoveredPartition:
    """One partition at the moment of a recovery.

    :param look: who is alive; asked at most once, when something was found that somebody may be at work on.
    :param own: the asking attempt; of a cleaner, which is none, a name that nobody else has.
    :param owner: the asking task, whose former tries are dead; None where nobody's are known to be.
    """

    entity: Entity
    storage: Storage
    look: Callable[[], Attempts]
    own: RequestPool
    owner: str | None

    @cached_property
    def attempts(self) -> Attempts:
        """Who was alive when this was first asked."""
        return self.look()


def busy(row: CompactionRow, reason: str) -> Outcome:
    """The outcome where a partition is left alone for now."""
    return Outcome(row.entity, OutcomeState.SKIPPED, f"{row.entity} {reason}", row.id)


def end_row(queue: CompactionQueue, row: CompactionRow, message: str, end: EndRow | None = None) -> None:
    """End the request of a dead attempt; that somebody else ended it meanwhile is no error.

    :param end: how; by default it fails.
    :raises OwnershipLostError: the row is what it was, and yet may not be ended.
    """
    try:
        (end or queue.fail)(row, message)
    except OwnershipLostError:
        now = queue.row(row.id)
        if now is not None and now.state is row.state and now.worker_id == row.worker_id:
            raise
        log.info("%s: request %s was ended by somebody else meanwhile", row.entity, row.id)
