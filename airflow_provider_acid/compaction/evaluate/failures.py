"""What fails: a partition's compactions, by the history that the metastore keeps, and the look at a table."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from airflow_provider_acid.compaction.evaluate.looking import NotSeen
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.recover.recovered_partition import DIED
from airflow_provider_acid.exceptions import (
    AcidError,
    ConfigurationError,
    MetastoreError,
    MetastoreUnavailableError,
    MetastoreVersionError,
    ObjectNotFoundError,
    UnexpectedError,
)
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState

log = logging.getLogger(__name__)

FAILED_COMPACTIONS_THRESHOLD = 2
"""So many failures in a row are too many (``hive.compactor.initiator.failed.compacts.threshold``)."""

OF_ONE_TABLE = (ConfigurationError, MetastoreError, UnexpectedError)
"""Errors that may say nothing about other tables; :class:`TableErrors` knows which do."""

MOST_FAILED_TABLES = 3
"""On so many tables the metastore may fail in one evaluation; where it fails on more, it is not the tables."""

_OF_ALL_TABLES = (MetastoreUnavailableError, MetastoreVersionError)

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


class TableErrors:
    """Which errors of tables one evaluation goes on after."""

    def __init__(self, selection: TableSelection) -> None:
        self._selection = selection
        self._failed: set[str] = set()

    def left_out(self, error: AcidError, full_table_name: str) -> NotSeen:
        """A table that a pattern matched, and why it is left out.

        :param error: of :data:`OF_ONE_TABLE`.
        :raises AcidError: the error, where the table is named without wildcards, or where it concerns every table:
            the metastore does not answer, or failed on more than :data:`MOST_FAILED_TABLES`.
        """
        if isinstance(error, _OF_ALL_TABLES) or self._selection.names_exactly(full_table_name):
            raise error
        if isinstance(error, (ConfigurationError, ObjectNotFoundError)):
            return NotSeen(str(error))
        if isinstance(error, MetastoreError):
            self._failed.add(full_table_name)
            if len(self._failed) > MOST_FAILED_TABLES:
                raise error
        told = str(error)
        reason = told if full_table_name in told else f"table {full_table_name}: {told}"
        log.warning("not evaluated: %s", reason)
        return NotSeen(reason, is_refused=True)
