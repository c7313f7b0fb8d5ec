"""What every kind of compaction queue checks alike, before it asks its server or its database."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import ConfigurationError, OwnershipLostError
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState

ExpectedRow = ClaimedCompaction | CompactionRow
"""What a caller takes a row for."""


def already_scheduled(id: int, state: str) -> str:
    """Why a request is not accepted, in Hive 4.0's words; servers before it give no reason.

    :param id: of the row in the way; so ``state``.
    """
    return f"Compaction is already scheduled with state='{state}' and id={id}"


def subject_of(expected: ExpectedRow) -> str:
    """What errors about the row are about."""
    return f"compaction {expected.id} of {expected.entity}"


def ownership_lost(expected: ExpectedRow, state: CompactionState | None, worker_id: str | None) -> OwnershipLostError:
    """The error that tells what became of the row.

    :param state: its state now; None where it is gone.
    """
    return OwnershipLostError(
        subject_of(expected),
        f"the row is now {state.value}, worker {worker_id}" if state else "the row is gone",
        "nothing was changed; start the attempt again",
    )


def check_recordable(claim: ClaimedCompaction, highest_write_id: int) -> None:
    """Do nothing where a high-water mark can be recorded.

    :raises ConfigurationError: it is not positive.
    """
    if highest_write_id <= 0:
        raise ConfigurationError(
            subject_of(claim),
            f"a high-water mark of {highest_write_id} cannot be recorded",
            "refuse the request: nothing was ever written",
        )


def recorded_txn_id(claim: ClaimedCompaction) -> int:
    """The transaction that was recorded for a claim.

    :raises ConfigurationError: none was.
    """
    if claim.txn_id is None:
        raise ConfigurationError(subject_of(claim), "has no recorded transaction", "call record() first")
    return claim.txn_id


def forgettable(row: CompactionRow, highest_write_id: int | None) -> int:
    """The write id up to which a row may be marked cleaned, if it is one.

    :raises ConfigurationError: it is none, not positive, or above the row's own.
    """
    if highest_write_id is None or not 0 < highest_write_id <= (row.highest_write_id or 0):
        raise ConfigurationError(
            str(row),
            f"cannot be marked cleaned up to write id {highest_write_id}, its own is {row.highest_write_id}",
            "leave the row ready for cleaning",
        )
    return highest_write_id


def in_cleaning_order(rows: Iterable[CompactionRow], entities: Iterable[Entity]) -> list[CompactionRow]:
    """Rows of some entities that wait to be cleaned, by high-water mark."""
    wanted = set(entities)
    found = [
        row for row in rows if row.waits_to_be_cleaned and row.entity in wanted and row.highest_write_id is not None
    ]
    return sorted(found, key=lambda row: (row.highest_write_id or 0, row.id))


def was_cleaned(row: CompactionRow | None) -> bool:
    """Whether a row that waited to be cleaned was: one that succeeded is removed from history after some time."""
    return row is None or row.state is CompactionState.SUCCEEDED
