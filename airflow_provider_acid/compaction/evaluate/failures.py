"""How often a partition's compactions failed, by the history that the metastore keeps."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_provider_acid.compaction.recover.recovered_partition import DIED
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState

FAILED_COMPACTIONS_THRESHOLD = 2
"""So many failures in a row are too many (``hive.compactor.initiator.failed.compacts.threshold``)."""

_HISTORY_OF_WORK = (CompactionState.SUCCEEDED, CompactionState.FAILED)


def failures_in_a_row(rows: Iterable[CompactionRow], *, count_deaths: bool) -> int:
    """Failures since the last success; what did not initiate, or was refused, does not count, as in Hive.

    A result that waits to be cleaned is a success, too: what it replaced may be kept for days.

    :param rows: of one partition.
    :param count_deaths: whether attempts that died count; they are not the partition's fault.
    """
    failures = 0
    worked = [row for row in rows if _has_worked(row) and (count_deaths or not _died(row))]
    for row in sorted(worked, key=lambda row: -row.id):
        if row.state is not CompactionState.FAILED:
            break
        failures += 1
    return failures


def _has_worked(row: CompactionRow) -> bool:
    return row.state in _HISTORY_OF_WORK or row.waits_to_be_cleaned


def _died(row: CompactionRow) -> bool:
    return (row.error_message or "").startswith(DIED)
