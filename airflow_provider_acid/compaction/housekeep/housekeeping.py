"""What nobody else does in time: claims of dead workers, orphaned directories, forgotten cleanings, and a report.

Recovery does most of this too, but only for a partition that is compacted again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.failures import FAILED_COMPACTIONS_THRESHOLD, failures_in_a_row
from airflow_provider_acid.compaction.evaluate.queue_figures import queue_figures
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.evaluate.table_listing import (
    RowsByEntity,
    locations,
    matching_databases,
    rows_by_entity,
)
from airflow_provider_acid.compaction.housekeep.report import Chore, Deed, HousekeepingReport, Stuck, StuckKind
from airflow_provider_acid.compaction.housekeep.stuck import find_stuck
from airflow_provider_acid.compaction.housekeep.twin_results import TwinResults
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.recover.recovery import Recovery
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.exceptions import (
    AcidError,
    MetastoreUnavailableError,
    ObjectNotFoundError,
    OwnershipLostError,
)
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState, TableInfo
from airflow_provider_acid.plan.twins import may_hold_twins

log = logging.getLogger(__name__)


@dataclass
class _Findings:
    deeds: list[Deed] = field(default_factory=list)
    stuck: list[Stuck] = field(default_factory=list)

    def did(self, entity: Entity, chore: Chore, message: str) -> None:
        self.deeds.append(Deed(entity, chore, message))

    def note(self, found: Deed | Stuck) -> None:
        if isinstance(found, Deed):
            self.deeds.append(found)
        else:
            self.stuck.append(found)

    @contextmanager
    def going_on(self, subject: object) -> Iterator[None]:
        """One odd partition must not keep the others from being looked after; a silent metastore does."""
        try:
            with Supervised(subject):
                yield
        except MetastoreUnavailableError:
            raise
        except AcidError as error:
            self.stuck.append(Stuck(StuckKind.PROBLEM, str(subject), None, str(error)))


class Housekeeper:
    """Looks after the tables of a selection; belongs to one thread, like its client.

    :param forgotten_seconds: age from which a finished compaction that still waits to be cleaned is handed on.
    :param max_partitions: partitions that are handed on at most.
    :param repair_twins: whether of two results of one range the one that the other contains is removed.
    """

    def __init__(
        self,
        client: AcidMetastoreClient,
        queue: CompactionQueue,
        settings: CompactionSettings,
        *,
        forgotten_seconds: float,
        max_partitions: int,
        repair_twins: bool = False,
    ) -> None:
        self._client = client
        self._queue = queue
        self._settings = settings
        self._forgotten_seconds = max(forgotten_seconds, settings.keep_replaced_seconds)
        self._max_partitions = max_partitions
        self._twins = TwinResults(client, queue, settings, repair=repair_twins)

    def sweep(self, selection: TableSelection) -> HousekeepingReport:
        """Do all chores once.

        What fails at one partition is in the report as a problem.

        :raises MetastoreUnavailableError: the metastore does not answer (any more).
        """
        findings = _Findings()
        rows = rows_by_entity(self._queue.rows(), selection)
        self._settle(rows, findings)
        self._end_stale_claims(rows, findings)
        self._look_at_places(selection, findings)
        rows = rows_by_entity(self._queue.rows(), selection)
        ready = [row for of_entity in rows.values() for row in of_entity if row.waits_to_be_cleaned]
        self._keep(ready, findings)
        stuck = find_stuck(self._client, self._queue, self._settings, rows)
        queue = queue_figures(rows, self._client.server_now_ms, self._settings.keep_replaced_seconds)
        return HousekeepingReport(tuple(findings.deeds), (*stuck, *findings.stuck), self._forgotten(ready), queue)

    def _settle(self, rows: RowsByEntity, findings: _Findings) -> None:
        """Rows whose workers had all but finished: committed, failed, or claimed again."""
        recovery = Recovery(self._client, self._queue, self._settings)
        for entity, of_entity in rows.items():
            before = {row.id: row for row in of_entity if recovery.is_unsettled(row)}
            if not before:
                continue
            with findings.going_on(entity):
                for outcome in recovery.settle_uncommitted([entity]):
                    if outcome.state is OutcomeState.FAILED:
                        findings.stuck.append(Stuck(StuckKind.PROBLEM, str(entity), None, outcome.message))
                for row in self._queue.rows(entity=entity):
                    if row.id in before and _standing(row) != _standing(before[row.id]):
                        message = f"request {row.id} was {before[row.id].state.value} and is {row.state.value}"
                        findings.did(entity, Chore.SETTLED, message)

    def _end_stale_claims(self, rows: RowsByEntity, findings: _Findings) -> None:
        now_ms = self._client.server_now_ms()
        for entity, of_entity in rows.items():
            recovery = Recovery(self._client, self._queue, self._settings, end=self._end_by(of_entity))
            for row in of_entity:
                silent_seconds = 0.0 if row.start_ms is None else (now_ms - row.start_ms) / 1000
                is_claim = row.state is CompactionState.WORKING and not recovery.is_unsettled(row)
                if not is_claim or silent_seconds <= self._settings.worker_timeout_seconds:
                    continue
                with findings.going_on(entity):
                    self._end_claim(recovery, row, silent_seconds, findings)

    def _end_claim(self, recovery: Recovery, row: CompactionRow, silent_seconds: float, findings: _Findings) -> None:
        if RequestPool.of_worker(row.worker_id) is None:
            message = f"request {row.id} is claimed by {row.worker_id}, which is not of this package"
            findings.stuck.append(Stuck(StuckKind.CLAIM, str(row.entity), silent_seconds, message))
            return
        alive = recovery.recover_claim(row)
        if alive is not None:
            findings.stuck.append(Stuck(StuckKind.CLAIM, str(row.entity), silent_seconds, alive.message))
            return
        now = self._queue.row(row.id)
        state = "gone" if now is None else now.state.value
        findings.did(row.entity, Chore.CLAIM_ENDED, f"request {row.id} of {row.worker_id} is {state} now")

    def _end_by(self, rows: Iterable[CompactionRow]) -> Callable[[CompactionRow, str], None]:
        """Given back to wait for another worker; failed after as many failures as make Hive give up."""
        if failures_in_a_row(rows, count_deaths=True) >= FAILED_COMPACTIONS_THRESHOLD:
            return self._queue.fail
        return self._queue.give_back

    def _look_at_places(self, selection: TableSelection, findings: _Findings) -> None:
        """Look once at each place where rows lie."""
        recovery = Recovery(self._client, self._queue, self._settings)
        for table in self._tables(selection, findings):
            with findings.going_on(table.full_table_name):
                recovery.remove_dead_runs(table.location)
                for entity, location, _ in locations(self._client, table):
                    with findings.going_on(entity):
                        self._look_at(recovery, entity, location, findings)

    def _look_at(self, recovery: Recovery, entity: Entity, location: str, findings: _Findings) -> None:
        storage = self._settings.storages.open(location)
        if not storage.exists(""):
            return
        listing = storage.list()
        removed = recovery.remove_orphans(entity, storage, listing)
        if removed:
            findings.did(entity, Chore.REMOVED, ", ".join(removed))
        # Names of Hive 3 tell no transactions: there no second result of a range finds a place.
        if self._queue.hive.publishes_by_commit and may_hold_twins(listing):
            for found in self._twins.look_after(entity):
                findings.note(found)

    def _tables(self, selection: TableSelection, findings: _Findings) -> Iterator[TableInfo]:
        names: list[str] = []
        for database in matching_databases(self._client, selection):
            of_database: list[str] = []
            with findings.going_on(f"database {database}"), suppress(ObjectNotFoundError):
                of_database = self._client.tables(database)
            for name in of_database:
                names.append(f"{database}.{name}")
                if not selection.matches(names[-1]):
                    continue
                table = None
                # What is not found was dropped since it was listed.
                with findings.going_on(f"{database}.{name}"), suppress(ObjectNotFoundError):
                    table = self._client.get_table(database, name)
                if table is not None and table.is_transactional and not table.is_external:
                    yield table
        for pattern in selection.unmatched(names):
            log.warning("%s; correct it, or take it out", pattern)

    def _keep(self, ready: Iterable[CompactionRow], findings: _Findings) -> None:
        """What waits to be cleaned is a claim on Hive 3, which the metastore would take back as forgotten."""
        if not self._queue.hive.is_claimed_until_cleaned:
            return
        for row in ready:
            # Lost since it was looked at: as a rule, a cleaner beside this is through with it.
            with findings.going_on(row.entity), suppress(OwnershipLostError):
                self._queue.keep(row)
                findings.did(row.entity, Chore.CLAIM_KEPT, f"request {row.id} waits to be cleaned")

    def _forgotten(self, ready: Iterable[CompactionRow]) -> tuple[Entity, ...]:
        now_ms = self._client.server_now_ms()
        old = [row for row in ready if (now_ms - (row.commit_ms or now_ms)) / 1000 >= self._forgotten_seconds]
        return tuple(dict.fromkeys(row.entity for row in old))[: self._max_partitions]


def _standing(row: CompactionRow) -> tuple[CompactionState, int | None]:
    return row.state, row.commit_ms
