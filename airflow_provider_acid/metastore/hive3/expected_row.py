"""What a caller believes about a row of Hive 3.1's compaction queue, and whether it is true."""

from __future__ import annotations

from airflow_provider_acid.exceptions import OwnershipLostError
from airflow_provider_acid.metastore import queue_rules
from airflow_provider_acid.metastore.hive3.stored_rows import WORKING, StoredRow
from airflow_provider_acid.metastore.queue import ClaimedCompaction
from airflow_provider_acid.metastore.queue_rules import ExpectedRow


def as_expected(expected: ExpectedRow, now: StoredRow | None, *, may_be_published: bool = True) -> StoredRow:
    """The row, if it is what the caller believes.

    :param may_be_published: whether a claim may still be changed when its result is part of the table.
    :raises OwnershipLostError: it is not.
    """
    if now is None or now.end_ms is not None or not _is_as_expected(now, expected, may_be_published):
        raise ownership_lost(expected, now)
    return now


def _is_as_expected(now: StoredRow, expected: ExpectedRow, may_be_published: bool) -> bool:
    if now.entity != expected.entity:
        return False
    if isinstance(expected, ClaimedCompaction):
        is_mine = (now.state, now.worker_id) == (WORKING, expected.worker_id)
        published = now.notes.published is not None
        return is_mine and (not published or (may_be_published and now.notes.txn_id == expected.txn_id))
    row = now.row()
    facts = (expected.state, expected.worker_id, expected.txn_id, expected.commit_ms)
    return not row.state.is_terminal and facts == (row.state, row.worker_id, row.txn_id, row.commit_ms)


def ownership_lost(expected: ExpectedRow, now: StoredRow | None) -> OwnershipLostError:
    """The error that tells what became of the row."""
    if now is None:
        return queue_rules.ownership_lost(expected, None, None)
    return queue_rules.ownership_lost(expected, now.row().state, now.worker_id)
