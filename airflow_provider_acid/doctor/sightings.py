"""What an evaluation's listings show beside its figures, so that no check lists the same once more."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.initiator import EvaluationObserver
from airflow_provider_acid.compaction.evaluate.looking import Seen
from airflow_provider_acid.plan.thresholds import CompactionDecision
from airflow_provider_acid.plan.twins import find_twins, names_of


@dataclass
class Sightings:
    """Filled by one evaluation, as its observer; keeps nothing of a partition where nothing is odd.

    :param told: is told of every partition, too.
    :ivar locations: by table; of those that were looked at.
    :ivar hidden: names of hidden directories.
    :ivar twins: what messages call several results of one range.
    """

    told: EvaluationObserver | None = None
    locations: dict[str, str] = field(default_factory=dict)
    hidden: dict[Entity, tuple[str, ...]] = field(default_factory=dict)
    twins: dict[Entity, tuple[str, ...]] = field(default_factory=dict)

    def saw(self, seen: Seen, decision: CompactionDecision, hindrance: str | None) -> None:
        """Keep what is odd."""
        entity, table = seen.place.entity, seen.place.view.table
        self.locations[table.full_table_name] = table.location
        if seen.hidden:
            self.hidden[entity] = seen.hidden
        if twins := find_twins(seen.directory.deltas):
            self.twins[entity] = tuple(map(names_of, twins))
        if self.told is not None:
            self.told.saw(seen, decision, hindrance)

    def passed_over(self, entity: Entity, reason: str) -> None:
        """Nothing was seen of it."""
        if self.told is not None:
            self.told.passed_over(entity, reason)
