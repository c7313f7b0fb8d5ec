"""What a caller believes about a row of Hive 3.1's compaction queue, and whether it is true."""

from __future__ import annotations

from airflow_provider_acid.exceptions import OwnershipLostError
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.stored_rows import WORKING, StoredRow
from airflow_provider_acid.metastore.values import CompactionRow

Belief = ClaimedCompaction | CompactionRow


def believed(belief: Belief, now: StoredRow | None, *, may_be_published: bool = True) -> StoredRow:
    """The row, if it is what the caller believes.

    :param may_be_published: whether a claim may still be changed when its result is part of the table.
    :raises OwnershipLostError: it is not.
    """
    if now is None or now.end_ms is not None or not _is_asbelieved(now, belief, may_be_published):
        raise ownership_lost(belief, now)
    return now


def _is_asbelieved(now: StoredRow, belief: Belief, may_be_published: bool) -> bool:
    if now.entity != belief.entity:
        return False
    if isinstance(belief, ClaimedCompaction):
        is_mine = (now.state, now.worker_id) == (WORKING, belief.worker_id)
        published = now.notes.published is not None
        return is_mine and (not published or (may_be_published and now.notes.txn_id == belief.txn_id))
    row = now.row()
    facts = (belief.state, belief.worker_id, belief.txn_id, belief.commit_ms)
    return not row.state.is_terminal and facts == (row.state, row.worker_id, row.txn_id, row.commit_ms)


def ownership_lost(belief: Belief, now: StoredRow | None) -> OwnershipLostError:
    """The error that tells what became of the row."""
    row = None if now is None else now.row()
    return OwnershipLostError(
        subject_of(belief),
        f"the row is now {row.state.value}, worker {now.worker_id}" if row and now else "the row is gone",
        "nothing was changed; start the attempt again",
    )


def subject_of(belief: Belief) -> str:
    """What errors about the row are about."""
    return f"compaction {belief.id} of {belief.entity}"
