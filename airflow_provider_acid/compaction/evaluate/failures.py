"""What fails: a partition's compactions, by the history that the metastore keeps, and the look at a table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import takewhile

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

FAILED_RETRY_SECONDS = 7 * 24 * 3600.0
"""So long after the last of them there is another try (Hive 4: ``hive.compactor.initiator.failed.retry.time``)."""

OF_ONE_TABLE = (ConfigurationError, MetastoreError, UnexpectedError)
"""Errors that may say nothing about other tables; :class:`TableErrors` knows which do."""

MOST_FAILED_TABLES = 3
"""On so many tables, or databases, the metastore may fail in one evaluation; where it fails on more, it is not they."""

_OF_ALL_TABLES = (MetastoreUnavailableError, MetastoreVersionError)

_HISTORY_OF_WORK = (CompactionState.SUCCEEDED, CompactionState.FAILED)


def failures_in_a_row(rows: Iterable[CompactionRow], *, count_deaths: bool) -> int:
    """Failures since the last success; what did not initiate, or was refused, does not count, as in Hive.

    A result that waits to be cleaned is a success, too: what it replaced may be kept for days.

    :param rows: of one partition.
    :param count_deaths: whether attempts that died count; they are not the partition's fault.
    """
    return len(_last_failures(rows, count_deaths))


def failed_too_often(rows: Iterable[CompactionRow], now_ms: Callable[[], int]) -> str | None:
    """Why a partition is not asked for; None where its last compactions did not fail, or so long ago that another may.

    Deaths do not count. Hive 4 counts the time from the newest request; rows of Hive 3 say only when they ended.

    :param rows: of one partition.
    :param now_ms: the clock of the metastore's database, by which ends are recorded; read only where many failed.
    """
    failed = _last_failures(rows, count_deaths=False)
    if len(failed) < FAILED_COMPACTIONS_THRESHOLD:
        return None
    ended_ms = failed[0].end_ms
    if ended_ms is not None and now_ms() - ended_ms > FAILED_RETRY_SECONDS * 1000:
        return None
    return (
        f"the last {len(failed)} compactions failed; a week after the last it is tried again. Remedy: remove the "
        "cause, then compact it by the DAG acid_compact_table with type major or minor."
    )


def _last_failures(rows: Iterable[CompactionRow], count_deaths: bool) -> list[CompactionRow]:
    """Newest first."""
    worked = [row for row in rows if _has_worked(row) and (count_deaths or not _died(row))]
    newest_first = sorted(worked, key=lambda row: -row.id)
    return list(takewhile(lambda row: row.state is CompactionState.FAILED, newest_first))


def _has_worked(row: CompactionRow) -> bool:
    return row.state in _HISTORY_OF_WORK or row.waits_to_be_cleaned


def _died(row: CompactionRow) -> bool:
    return (row.error_message or "").startswith(DIED)


class TableErrors:
    """Which errors of tables, and of databases, one evaluation goes on after."""

    def __init__(self, selection: TableSelection) -> None:
        self.has_left_out_databases = False
        self._selection = selection
        self._asked: set[str] = set()
        self._failed: dict[str, MetastoreError] = {}

    def ask(self, full_table_name: str) -> None:
        """The metastore is asked for a table of the selection."""
        self._asked.add(f"table {full_table_name}")

    def check_all(self) -> None:
        """What an evaluation asks that evaluated nothing and serves nobody, lest it seem that there was nothing to do.

        :raises MetastoreError: the metastore failed on every table that it was asked for, be they ever so few.
        """
        if self._failed and self._failed.keys() == self._asked:
            raise next(iter(self._failed.values()))

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
        return self._noted(error, f"table {full_table_name}")

    def database_left_out(self, error: AcidError, database: str) -> NotSeen:
        """A database that a pattern matched, and why it is left out; it counts as one table.

        :param error: of :data:`OF_ONE_TABLE`.
        :raises AcidError: as of :meth:`left_out`, where the database is named without wildcards.
        """
        if isinstance(error, _OF_ALL_TABLES) or self._selection.names_database(database):
            raise error
        subject = f"database {database}"
        self.has_left_out_databases = True
        self._asked.add(subject)
        return self._noted(error, subject)

    def _noted(self, error: AcidError, subject: str) -> NotSeen:
        if isinstance(error, MetastoreError):
            self._failed[subject] = error
            if len(self._failed) > MOST_FAILED_TABLES:
                raise error
        told = str(error)
        reason = told if subject in told else f"{subject}: {told}"
        log.warning("not evaluated: %s", reason)
        return NotSeen(reason, is_refused=True)
