"""What follows from a look at one partition: whether it is due, for what, and what stands in the way."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.eligibility import check_partition
from airflow_provider_acid.compaction.evaluate.aborts import AbortAges, aborted_write_ids
from airflow_provider_acid.compaction.evaluate.demand import Demand
from airflow_provider_acid.compaction.evaluate.looking import Seen
from airflow_provider_acid.compaction.neighbours import Neighbours
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.exceptions import RefusedError
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.plan.planning import Choice, choose
from airflow_provider_acid.plan.thresholds import NO_ABORTS, CompactionDecision, decide, demanded


@dataclass(frozen=True)
class Judgement:
    """What a partition is due for.

    :param choice: what its compaction would do; None where none is due, or possible.
    :param hindrance: why it is not asked for although it is due; None where it is, or is not due.
    :param refused: whether somebody has to look at the hindrance.
    """

    decision: CompactionDecision
    choice: Choice | None = None
    hindrance: str | None = None
    refused: bool = False


class Judge:
    """Judges the partitions of one evaluation; belongs to one thread, like its client.

    :param kept: partitions where what a compaction replaced is kept for an undo: it is nobody's to clean, nor are the
        aborted writes there.
    """

    def __init__(
        self,
        client: AcidMetastoreClient,
        queue: CompactionQueue,
        settings: CompactionSettings,
        demand: Demand = Demand(),  # noqa: B008 - immutable
        kept: Set[Entity] = frozenset(),
    ) -> None:
        self._kept = kept
        self._ages = AbortAges(client)
        self._neighbours = Neighbours(client, queue.database, settings.exclusive_locations)
        self._policy = settings.policy(queue.hive)
        self._demand = demand

    def judge(self, seen: Seen) -> Judgement:
        """What a partition is due for.

        :raises AcidError: the metastore does not tell how old its aborted transactions are, or an option of the table
            cannot be used.
        """
        decision = self._decide(seen)
        if decision.type is None:
            return Judgement(decision)
        directory = seen.directory
        try:
            # What a worker would refuse after its claim, in every run anew.
            check_partition(seen.place.entity, seen.place.view.table, seen.place.partition)
            self._neighbours.check(seen.place.view.table, seen.place.partition)
            choice = choose(seen.place.entity, directory, seen.files, decision.type, self._policy)
        except RefusedError as error:
            return Judgement(decision, None, str(error), refused=True)
        left_over = directory.obsolete or directory.aborted
        if choice.nothing is not None and (not left_over or seen.place.entity in self._kept):
            return Judgement(decision, None, choice.nothing)
        return Judgement(decision, choice)

    def _decide(self, seen: Seen) -> CompactionDecision:
        view = seen.place.view
        aborted = NO_ABORTS
        if view.write_ids.aborted and seen.place.entity not in self._kept:
            aborted = self._ages.figures(view.table.full_table_name, aborted_write_ids(seen.directory, view.write_ids))
        decision = decide(seen.directory, view.thresholds, self._policy.hive, kind=view.kind, aborted=aborted)
        return decision if self._demand.type is None else demanded(decision, self._demand.type)
