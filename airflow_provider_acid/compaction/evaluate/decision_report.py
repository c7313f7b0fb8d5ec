"""What an evaluation decided, as the lines that a task logs: counts, a table of partitions, what was passed over."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.budget import RunBudget
from airflow_provider_acid.compaction.evaluate.initiator import Evaluated, Evaluation
from airflow_provider_acid.compaction.outcomes import DuePartition
from airflow_provider_acid.compaction.quantities import human_bytes
from airflow_provider_acid.compaction.text_table import LINES, text_table

Line = tuple[int, str]
"""A level of :mod:`logging` and a message."""

BATCH_BYTES = 64 << 30
"""What one Spark application reads before another begins; small partitions share one by the thousand."""

LEFT = "left to the next run (budget): "
HEADER = ("partition", "type", "deltas", "delete deltas", "ratio", "bytes", "read cost", "reason")
NUMBERS = (2, 3, 4, 5, 6)


@dataclass(frozen=True)
class RunShare:
    """What one run takes of what is due.

    :param taken: is compacted now, worst first.
    :param left: is left to the next run.
    """

    evaluation: Evaluation
    taken: tuple[DuePartition, ...]
    left: tuple[DuePartition, ...]

    @classmethod
    def within(cls, budget: RunBudget, evaluation: Evaluation) -> RunShare:
        """The worst of what is due, as much as the budget allows; a request of somebody else counts no bytes."""
        figures = _by_entity(evaluation)
        sizes = [figures[item.entity].input_bytes if item.entity in figures else 0 for item in evaluation.due]
        count = budget.takes(sizes)
        return cls(evaluation, evaluation.due[:count], evaluation.due[count:])

    def batches(self, partitions: int, most: int) -> list[list[dict[str, object]]]:
        """What is taken as small objects: in one list the partitions of one Spark application, worst first.

        Each is of one queue of the cluster.

        :param partitions: most in one list; one ends before it where it reads more than :data:`BATCH_BYTES`.
        :param most: lists; where that would not do, they may read more.
        """
        figures = _by_entity(self.evaluation)
        by_queue: dict[str | None, list[tuple[DuePartition, int]]] = {}
        for item in self.taken:
            input_bytes = figures[item.entity].input_bytes if item.entity in figures else 0
            by_queue.setdefault(item.job_queue, []).append((item, input_bytes))
        batch_bytes, total_bytes = BATCH_BYTES, sum(size for of_queue in by_queue.values() for _, size in of_queue)
        while True:
            batches = [batch for of_queue in by_queue.values() for batch in _batches(of_queue, partitions, batch_bytes)]
            if len(batches) <= most or batch_bytes >= total_bytes:
                break
            batch_bytes *= 2
        return [[item.to_json() for item in batch] for batch in batches]

    def lines(self, *, all_partitions: bool = False) -> Iterator[Line]:
        """The decision for the log.

        :param all_partitions: show also those that are not due.
        """
        found = self.evaluation
        yield (
            logging.INFO,
            f"{_counted(len(found.evaluated), 'partition')} looked at: {len(found.due)} due, {len(found.skipped)} "
            f"skipped, {_counted(len(found.foreign), 'request')} of others not served",
        )
        if self.left:
            yield logging.INFO, f"{len(self.left)} of those due are left to the next run (budget)"
        yield from _limited((logging.WARNING, f"{pattern}; correct it, or take it out") for pattern in found.unmatched)
        yield from _limited((logging.WARNING, str(request)) for request in found.foreign)
        if found.due or all_partitions:
            title = "partitions" if all_partitions else "due"
            for line in text_table(title, HEADER, list(self._rows(all_partitions)), right=NUMBERS):
                yield logging.INFO, line
        yield from _limited((logging.INFO, f"skipped: {reason}") for reason in found.skipped)

    def _rows(self, all_partitions: bool) -> Iterator[Sequence[str]]:
        figures = _by_entity(self.evaluation)
        for item in self.taken:
            yield _row(item, item.reason, figures.get(item.entity))
        for item in self.left:
            yield _row(item, LEFT + item.reason, figures.get(item.entity))
        for seen in self.evaluation.evaluated if all_partitions else ():
            if seen.decision.type is None:
                yield _cells(seen.entity, "-", seen, seen.decision.reason)


def _batches(
    sized: Iterable[tuple[DuePartition, int]], partitions: int, batch_bytes: int
) -> Iterator[list[DuePartition]]:
    batch: list[DuePartition] = []
    total_bytes = 0
    for item, input_bytes in sized:
        if batch and (len(batch) >= partitions or total_bytes + input_bytes > batch_bytes):
            yield batch
            batch, total_bytes = [], 0
        batch.append(item)
        total_bytes += input_bytes
    if batch:
        yield batch


def _by_entity(evaluation: Evaluation) -> dict[Entity, Evaluated]:
    return {seen.entity: seen for seen in evaluation.evaluated}


def _row(item: DuePartition, reason: str, seen: Evaluated | None) -> Sequence[str]:
    if seen is None:
        return str(item.entity), item.type.value, *"-----", reason
    return _cells(item.entity, item.type.value, seen, reason)


def _cells(entity: Entity, type: str, seen: Evaluated, reason: str) -> Sequence[str]:
    decision = seen.decision
    ratio = "-" if decision.delta_size_ratio is None else f"{decision.delta_size_ratio:.2f}"
    return (
        str(entity),
        type,
        str(decision.delta_count),
        str(decision.delete_delta_count),
        ratio,
        human_bytes(seen.input_bytes or decision.base_bytes + decision.delta_bytes),
        human_bytes(seen.read_cost_bytes),
        reason,
    )


def _limited(lines: Iterable[Line]) -> Iterator[Line]:
    every = list(lines)
    yield from every[:LINES]
    if len(every) > LINES:
        yield logging.INFO, f"... and {len(every) - LINES} more"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
