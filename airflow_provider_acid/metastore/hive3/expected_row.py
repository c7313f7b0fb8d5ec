"""What a caller believes about a row of Hive 3.1's compaction queue, and whether it is true."""

from __future__ import annotations

from airflow_provider_acid.exceptions import OwnershipLostError
from airflow_provider_acid.metastore import queue_rules
from airflow_provider_acid.metastore.hive3.stored_rows import WORKING, StoredRow
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.queue_rules import Belief


def believed(belief: Belief, now: StoredRow | None, *, may_be_published: bool = True) -> StoredRow:
    """The row, if it is what the caller believes.

    :param may_be_published: whether a claim may still be changed when its result is part of the table.
    :raises OwnershipLostError: it is not.
    """
    if now is None or now.end_ms is not None or not _is_as_believed(now, belief, may_be_published):
        raise ownership_lost(belief, now)
    return now


def _is_as_believed(now: StoredRow, belief: Belief, may_be_published: bool) -> bool:
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
    if now is None:
        return queue_rules.ownership_lost(belief, None, None)
    return queue_rules.ownership_lost(belief, now.row().state, now.worker_id)
