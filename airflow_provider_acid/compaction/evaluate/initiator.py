"""Hive's Initiator: which partitions of a selection of tables are due, for what, and why."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Protocol

from airflow_provider_acid.acid.directory import AcidDirectory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.write_ids import compactor_list
from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.compaction.eligibility import table_refusal
from airflow_provider_acid.compaction.evaluate.demand import Demand
from airflow_provider_acid.compaction.evaluate.failures import (
    OF_ONE_TABLE,
    TableErrors,
    failed_too_often,
)
from airflow_provider_acid.compaction.evaluate.judging import Judge
from airflow_provider_acid.compaction.evaluate.looking import NotSeen, Place, Seen, TableView, looks
from airflow_provider_acid.compaction.evaluate.progress import EvaluationProgress
from airflow_provider_acid.compaction.evaluate.queue_figures import QueueFigures, queue_figures
from airflow_provider_acid.compaction.evaluate.read_cost import read_cost_bytes
from airflow_provider_acid.compaction.evaluate.selection import TableSelection, UnmatchedPattern
from airflow_provider_acid.compaction.evaluate.table_listing import (
    Locations,
    RowsByEntity,
    demanded_locations,
    locations,
    matching_databases,
    no_such_table,
    rows_by_entity,
)
from airflow_provider_acid.compaction.outcomes import DuePartition, job_queue_of
from airflow_provider_acid.compaction.requests_of_others import LeftRequest, MetRequests, meet_requests, served_pools
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.snapshot import current_txns
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.exceptions import ConfigurationError, ObjectNotFoundError, UnexpectedError
from airflow_provider_acid.metastore.database.written import WriteRecords
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import (
    CompactionRow,
    CompactionState,
    DatabaseInfo,
    TableInfo,
)
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.planning import Choice
from airflow_provider_acid.plan.thresholds import (
    CompactionDecision,
    TableKind,
    auto_compaction,
)

log = logging.getLogger(__name__)

Places = Generator[Place | NotSeen, None, None]


@dataclass(frozen=True)
class Evaluated:
    """One partition's figures and what follows from them.

    :param read_cost_bytes: what its deltas cost readers; see :mod:`~..evaluate.read_cost`.
    :param input_bytes: what its compaction reads; 0 where none is due, or possible, or where it is only to be cleaned.
    """

    entity: Entity
    decision: CompactionDecision
    read_cost_bytes: int = 0
    input_bytes: int = 0


@dataclass(frozen=True)
class Evaluation:
    """What one look at a selection of tables gave.

    :param due: partitions to compact now: requests of others by age, then by what their deltas cost readers, worst
        first.
    :param evaluated: every partition that was looked at, with its figures.
    :param skipped: tables and partitions that were not evaluated or not asked for, each with the reason.
    :param refused: those of them that somebody has to look at: they cannot be compacted, or not be looked at.
    :param foreign: other people's requests that wait and are not served.
    :param queue: how the queue stands, for the tables of the selection.
    :param unmatched: patterns that no table needs.
    :param not_automatic: full names of the tables that ``no_auto_compaction`` kept from being looked at.
    """

    due: tuple[DuePartition, ...] = ()
    evaluated: tuple[Evaluated, ...] = ()
    skipped: tuple[str, ...] = ()
    foreign: tuple[LeftRequest, ...] = ()
    refused: tuple[str, ...] = ()
    queue: QueueFigures = field(default_factory=QueueFigures)
    unmatched: tuple[UnmatchedPattern, ...] = ()
    not_automatic: tuple[str, ...] = ()


class EvaluationObserver(Protocol):
    """Is told of every partition while an evaluation goes on; it must neither fail nor take time."""

    def saw(self, seen: Seen, decision: CompactionDecision, hindrance: str | None) -> None:
        """A partition was looked at.

        :param hindrance: why it is not asked for although it is due; None where it is, or is not due.
        """

    def passed_over(self, entity: Entity, reason: str) -> None:
        """A partition exists but was not looked at, or could not be."""


@dataclass
class _Findings:
    due: list[tuple[float, DuePartition]] = field(default_factory=list)
    evaluated: list[Evaluated] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unmatched: tuple[UnmatchedPattern, ...] = ()
    not_automatic: list[str] = field(default_factory=list)

    def refuse(self, reason: str) -> None:
        self.leave_out(NotSeen(reason, is_refused=True))

    def leave_out(self, found: NotSeen) -> None:
        self.skipped.append(found.reason)
        if found.is_refused:
            self.refused.append(found.reason)


class Initiator:
    """Evaluates tables; belongs to one thread, like its client.

    :param writes: what the metastore's database knows; asked only where the settings' candidates are ``written``.
    :param demand: what somebody asks for by hand, beside the thresholds; such a selection names one table.
    :param observer: is told of every partition.
    :raises ConfigurationError: they are, and there is no database to ask.
    """

    def __init__(
        self,
        client: AcidMetastoreClient,
        queue: CompactionQueue,
        settings: CompactionSettings,
        writes: WriteRecords | None = None,
        demand: Demand = Demand(),  # noqa: B008 - immutable
        observer: EvaluationObserver | None = None,
    ) -> None:
        self._client = client
        self._queue = queue
        self._settings = settings
        self._observer = observer
        self._writes = None if settings.candidates is Candidates.ALL else _needed(writes)
        self._demand = demand
        self._progress = EvaluationProgress()

    def evaluate(self, selection: TableSelection) -> Evaluation:
        """Look at all tables of a selection once.

        :raises AcidError: a table that is named without wildcards, or a partition that is demanded, does not exist;
            such a table cannot be compacted; the metastore does not answer, or fails on many tables, or on all. What
            a pattern matches is skipped with its reason instead, and so is every partition that cannot be looked at,
            also where its storage does not answer.
        """
        findings, errors = _Findings(), TableErrors(selection)
        every_row = self._queue.rows()
        # Ages of rows are counted from one moment after they were read.
        now_ms = cache(self._client.server_now_ms)
        rows = rows_by_entity(every_row, selection)
        others = self._meet_requests(every_row, selection)
        findings.due += [(math.inf, due) for due in others.due]
        tables = list(self._tables(selection, findings, errors))
        if tables:
            left_alone = {
                entity: reason
                for entity, of_entity in rows.items()
                if (reason := self._reason_to_leave_alone(entity, of_entity, now_ms)) is not None
            }
            places = self._places(tables, errors, left_alone, others.entities)
            self._look_at(places, errors, findings, self._kept(rows))
        if not (findings.evaluated or findings.due):
            errors.check_all()
        worst_first = sorted(findings.due, key=lambda item: (-item[0], item[1].request_id or 0, item[1].entity))
        metastore_id = self._client.database_uuid() if worst_first else None
        return Evaluation(
            tuple(replace(due, metastore_id=metastore_id) for _, due in worst_first),
            tuple(findings.evaluated),
            tuple(findings.skipped),
            others.left,
            tuple(findings.refused),
            queue_figures(rows, now_ms, self._settings.keep_replaced_seconds),
            findings.unmatched,
            tuple(findings.not_automatic),
        )

    def _tables(self, selection: TableSelection, findings: _Findings, errors: TableErrors) -> Iterator[TableInfo]:
        names: set[str] = set()
        written = None if self._writes is None else self._writes.tables()
        for database, name in self._listed(selection, findings, errors):
            full_name = f"{database.name}.{name}".lower()
            names.add(full_name)
            if not selection.matches(full_name):
                continue
            is_candidate = written is None or full_name in written
            if not is_candidate and not selection.names_exactly(full_name):
                continue
            errors.ask(full_name)
            try:
                with Supervised(full_name):
                    table = self._client.get_table(database.name, name)
                    reason = self._reason_to_skip(table, database, selection, findings)
            except OF_ONE_TABLE as error:
                # Of many tables some are dropped between the list of their names and the look at each.
                findings.leave_out(errors.left_out(error, full_name))
                continue
            if reason is not None:
                findings.skipped.append(reason)
            elif is_candidate:
                yield table
        # What a pattern would match in a database that does not list its tables, nobody knows.
        findings.unmatched = () if errors.has_left_out_databases else selection.unmatched(names)
        missing = [name for name in selection.exact_names if name not in names and selection.matches(name)]
        if missing:
            raise no_such_table(self._client, missing[0], names)

    def _listed(
        self, selection: TableSelection, findings: _Findings, errors: TableErrors
    ) -> Iterator[tuple[DatabaseInfo, str]]:
        """The names of all tables of the databases that may hold some of a selection."""
        for database in matching_databases(self._client, selection):
            try:
                with Supervised(f"database {database}"):
                    found, names = self._client.get_database(database), self._client.tables(database)
            except ObjectNotFoundError as error:
                # Dropped since it was listed; whoever names a table of it is told so.
                findings.skipped.append(str(error))
                continue
            except OF_ONE_TABLE as error:
                findings.leave_out(errors.database_left_out(error, database))
                continue
            yield from ((found, name) for name in names)

    def _reason_to_skip(
        self, table: TableInfo, database: DatabaseInfo, selection: TableSelection, findings: _Findings
    ) -> str | None:
        named = selection.names_exactly(table.full_table_name)
        refusal = table_refusal(table, database)
        if refusal is not None:
            if named:
                raise refusal
            return str(refusal)
        automatic = auto_compaction(
            table.parameters,
            database.parameters,
            listed_explicitly=named,
            override=self._settings.override_no_auto_compaction,
            hive=self._queue.hive,
        )
        if not automatic.allowed:
            findings.not_automatic.append(table.full_table_name)
            return f"table {table.full_table_name}: {automatic.reason}"
        return None

    def _places(
        self,
        tables: Sequence[TableInfo],
        errors: TableErrors,
        left_alone: Mapping[Entity, str],
        requested: Set[Entity],
    ) -> Places:
        txns = current_txns(self._client)
        visible = self._queue.hive.visibility(txns)
        names = [table.full_table_name for table in tables]
        write_ids = {ids.full_table_name: ids for ids in self._client.valid_write_ids(names, str(txns))}
        for number, table in enumerate(tables, start=1):
            self._progress.table(number, len(tables))
            of_table = compactor_list(write_ids[table.full_table_name])
            try:
                with Supervised(table.full_table_name):
                    thresholds = self._settings.thresholds.for_table(table.parameters)
                    kind = TableKind.of(table.parameters) or TableKind.FULL_ACID
                view = TableView(table, kind, thresholds, visible, of_table)
                with Supervised(table.full_table_name), closing(self._locations(table)) as found:
                    for entity, location, partition in found:
                        if entity in requested:
                            self._pass_over(entity, "its request waits in the metastore's queue")
                            continue
                        reason = left_alone.get(entity)
                        if reason:
                            self._pass_over(entity, reason)
                        yield NotSeen(reason) if reason else Place(view, entity, location, partition)
            except OF_ONE_TABLE as error:
                yield errors.left_out(error, table.full_table_name)

    def _locations(self, table: TableInfo) -> Locations:
        if self._demand.partitions:
            return demanded_locations(self._client, table, self._demand.partitions)
        return locations(self._client, table, self._recorded(table), self._progress.expect)

    def _recorded(self, table: TableInfo) -> Set[str | None] | None:
        """The partitions to which writes are recorded; None where all are looked at."""
        if self._writes is None:
            return None
        entity = Entity(table.database, table.name)
        recorded = self._writes.partitions(entity.database, entity.table)
        if table.partition_keys and None in recorded:
            log.info("%s: all partitions are looked at, for a write is recorded that names none", entity)
        return recorded

    def _kept(self, rows: RowsByEntity) -> Set[Entity]:
        """The partitions where what a compaction replaced may be kept for an undo."""
        if not self._settings.keep_replaced_seconds:
            return frozenset()
        return {row.entity for of_entity in rows.values() for row in of_entity if row.waits_to_be_cleaned}

    def _look_at(self, places: Places, errors: TableErrors, findings: _Findings, kept: Set[Entity]) -> None:
        judge = Judge(self._client, self._queue, self._settings, self._demand, kept)
        settings = self._settings
        with closing(places), closing(looks(places, settings.storages, settings.listing_threads)) as seen:
            for found in seen:
                self._progress.looked_at()
                if isinstance(found, NotSeen):
                    findings.leave_out(found)
                    if found.failed is not None:
                        self._pass_over(found.failed, found.reason)
                        log.warning("%s: not evaluated: %s", found.failed, found.reason)
                    continue
                try:
                    with Supervised(found.place.entity):
                        self._judge(found, judge, findings)
                except UnexpectedError as error:
                    findings.refuse(str(error))
                except OF_ONE_TABLE as error:
                    findings.leave_out(errors.left_out(error, found.place.entity.full_table_name))

    def _judge(self, seen: Seen, judge: Judge, findings: _Findings) -> None:
        entity, directory = seen.place.entity, seen.directory
        judged = judge.judge(seen)
        decision, choice = judged.decision, judged.choice
        if judged.refused:
            findings.refuse(str(judged.hindrance))
        elif judged.hindrance is not None:
            findings.skipped.append(f"{entity}: {judged.hindrance}")
        cost_bytes = read_cost_bytes(directory)
        input_bytes = 0 if choice is None or choice.nothing is not None else _input_bytes(choice, directory)
        findings.evaluated.append(Evaluated(entity, decision, cost_bytes, input_bytes))
        if decision.type is not None and choice is not None:
            queue = job_queue_of(seen.place.view.table.parameters)
            due = DuePartition(entity, decision.type, decision.reason, job_queue=queue, was_seen=True)
            findings.due.append((cost_bytes, due))
        if self._observer is not None:
            self._observer.saw(seen, decision, judged.hindrance)

    def _pass_over(self, entity: Entity, reason: str) -> None:
        if self._observer is not None:
            self._observer.passed_over(entity, reason)

    def _reason_to_leave_alone(
        self, entity: Entity, rows: list[CompactionRow], now_ms: Callable[[], int]
    ) -> str | None:
        failed = failed_too_often(rows, now_ms) if self._demand.type is None else None
        if failed is not None:
            return f"{entity}: {failed}"
        waiting = [row for row in rows if row.state is CompactionState.READY_FOR_CLEANING]
        # What is only kept for an undo is cleaned by whoever compacts it anew.
        if waiting and self._queue.hive.is_claimed_until_cleaned and not self._settings.keep_replaced_seconds:
            return f"{entity}: request {waiting[0].id} waits to be cleaned, and Hive 3 takes no other meanwhile"
        return None

    def _meet_requests(self, rows: Sequence[CompactionRow], selection: TableSelection) -> MetRequests:
        """Serve or report every waiting request of others, also for tables that are not evaluated."""

        def concerns(entity: Entity) -> bool:
            is_demanded = not self._demand.partitions or entity.partition in self._demand.partitions
            return is_demanded and selection.matches(entity.full_table_name)

        serves, pools = self._settings.serve_foreign_requests, served_pools(self._settings, self._queue)
        return meet_requests(self._client, self._queue, rows, concerns=concerns, serves=serves, pools=pools)


def _input_bytes(choice: Choice, directory: AcidDirectory) -> int:
    originals = directory.originals if choice.type is CompactionType.MAJOR else ()
    return sum([part.size_bytes for part in (*choice.inputs, *originals)])


def _needed(writes: WriteRecords | None) -> WriteRecords:
    if writes is None:
        raise ConfigurationError(
            "candidates = written",
            "needs the metastore's own records of writes, and no connection to its database is configured",
            "name one as metastore_db_conn_id in the extra of the hive_acid connection, or set candidates to all",
        )
    return writes
