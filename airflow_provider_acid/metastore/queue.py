"""The metastore's compaction queue, as a worker and a cleaner outside of Hive use it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType

KEEP_SECONDS = 600.0
"""Age of a claim from which :meth:`CompactionQueue.keep` is called; Hive takes back those that are silent for 24 h."""


@dataclass(frozen=True)
class Enqueued:
    """The request has a row of its own."""

    id: int


@dataclass(frozen=True)
class NotEnqueued:
    """The request was not accepted.

    :param reason: the server's words.
    :param existing: the row in the way, where one was found.
    """

    reason: str
    existing: CompactionRow | None


@dataclass(frozen=True)
class ClaimedCompaction:
    """A row that is being worked on in the name of ``worker_id``.

    :param info: the row as the server handed it out, plus what was recorded since; sent back with every change.
    :param txn_id: the recorded transaction; None until recorded.
    """

    info: CompactionInfo
    worker_id: str
    txn_id: int | None = None

    @property
    def id(self) -> int:
        """The row's id."""
        return self.info.id

    @property
    def entity(self) -> Entity:
        """What is to be compacted."""
        return self.info.entity


class CompactionQueue(Protocol):
    """One compaction queue. For the thread that owns the client behind it.

    It shows compactions only, not what Hive 4 keeps beside them (:attr:`~.values.CompactionRow.is_removal`).

    Every change of a row looks first whether the row is still what the caller believes it to be, because the
    metastore does not: it identifies rows by id alone.
    """

    @property
    def database(self) -> MetastoreDatabase | None:
        """The metastore's database; None where it is not at hand."""

    @property
    def hive(self) -> Hive:
        """The kind of its metastore."""

    def enqueue(
        self, entity: Entity, type: CompactionType, pool: str, properties: Mapping[str, str] | None = None
    ) -> Enqueued | NotEnqueued:
        """Request a compaction in a pool of its own."""

    def claim(self, pool: str, worker_id: str) -> ClaimedCompaction | None:
        """Claim the initiated request of ``pool``; None where there is none."""

    def line(self, rows: Iterable[CompactionRow]) -> list[CompactionRow]:
        """The requests among these rows that are handed out one after the other to whoever names no pool.

        On Hive 4 without its database those without a pool, and those of any pool that nobody claimed for its pool
        time-out (12 h). None where each may be claimed by itself.

        :param rows: by id.
        """

    def claim_foreign(self, row: CompactionRow, worker_id: str) -> ClaimedCompaction | CompactionRow | None:
        """Claim a waiting request that a user or Hive's Initiator made, and no other; one of a pool by its id alone.

        :returns: the request that stands before it in the line instead of a claim, and was left as it is; None
            where the request is no longer waiting.
        """

    def record(self, claim: ClaimedCompaction, highest_write_id: int, txn_id: int, run_as: str) -> ClaimedCompaction:
        """Record high-water mark, transaction and user.

        :raises OwnershipLostError: the row is no longer this claim's.
        """

    def fence(self, claim: ClaimedCompaction) -> None:
        """Do nothing where the row is this claim's, and no other row's cleaning may count its recorded transaction.

        From then on no other of the partition is committed before this one: it keeps them away.

        :raises OwnershipLostError: it is not, or one may.
        """

    def set_job_id(self, claim: ClaimedCompaction, job_id: str) -> None:
        """Record the id of the Spark application, for SHOW COMPACTIONS."""

    def complete(self, claim: ClaimedCompaction) -> None:
        """Make the row ready for cleaning, once its result is part of the table; also where somebody did it already.

        Where the commit publishes (Hive 4), that is committed before, and the database records at the commit who may
        still read the merged directories. Where the rename does (Hive 3.1), this records it: the highest transaction
        and lock id of this moment.

        :raises OwnershipLostError: the row is no longer this claim's.
        """

    def keep(self, row: ClaimedCompaction | CompactionRow) -> None:
        """Tell that a claim, or a row that waits for its cleaning, is not forgotten.

        To be called far more often than the metastore's worker time-out (24 h), after which it takes claims back.

        :raises OwnershipLostError: the row changed since it was claimed or looked up.
        """

    def give_back(self, row: CompactionRow, message: str) -> None:
        """Take a claim from a worker that is silent for longer than the worker time-out.

        The request waits for another worker then; where the metastore lets nobody but itself do that (Hive 4), it
        is failed instead.

        :raises OwnershipLostError: the row changed since it was looked up.
        """

    def fail(self, row: ClaimedCompaction | CompactionRow, message: str) -> None:
        """Move a row to history as failed.

        :raises OwnershipLostError: the row changed since it was claimed or looked up.
        """

    def refuse(self, row: ClaimedCompaction | CompactionRow, message: str) -> None:
        """Move a row to history as refused.

        :raises OwnershipLostError: the row changed since it was claimed or looked up.
        """

    def row(self, id: int) -> CompactionRow | None:
        """The row of that id, in queue or history."""

    def rows(
        self, entity: Entity | None = None, state: CompactionState | None = None, pool: str | None = None
    ) -> list[CompactionRow]:
        """Rows of queue and history that match all that is given, by id."""

    def ready_to_clean(self, entities: Iterable[Entity]) -> list[CompactionRow]:
        """Rows whose compaction is committed and not cleaned, by high-water mark: they are to be cleaned in order."""

    def is_withheld(self, row: CompactionRow) -> bool:
        """Whether Hive's own Cleaner certainly leaves a row alone that waits to be cleaned."""

    def cleaned(self, row: CompactionRow, highest_write_id: int | None) -> None:
        """Move a row to history as succeeded, after its obsolete directories are deleted.

        :param highest_write_id: bookkeeping of write ids up to this one is dropped; no file may hold rows of an
            aborted one any more. None: none is dropped; only where :attr:`hive` ``can_forget_nothing``.
        :raises ConfigurationError: it is not positive, or above the row's own.
        :raises OwnershipLostError: the row is not ready for cleaning, and was not cleaned by somebody else either.
        """
