"""Twins: results of several compactions of one range of write ids, all committed: readers read each (HIVE-29210).

Hive makes them where its metastore dies between a compaction's commit and the note of it in the queue: the request is
carried out once more. Their names differ in nothing but the transaction, so that on Hive 3, whose names have none, the
second would have to take the first one's name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from airflow_provider_acid.acid.layout import DeltaDirectory
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.exceptions import RefusedError, UnsupportedTableError

BY_HAND = "find out which of them is to stay, and move the other out of the table"
"""What is left to do where nothing proves which one that is."""


@dataclass(frozen=True)
class Result:
    """What one compaction made of a range of write ids: a delta, a delete delta, or both.

    :param deltas: that of rows first.
    """

    txn_id: int
    deltas: tuple[DeltaDirectory, ...]

    def of_kind(self, *, is_delete: bool) -> DeltaDirectory | None:
        """The delta, or the delete delta; None where it has none."""
        return next((delta for delta in self.deltas if delta.name.is_delete == is_delete), None)

    def __str__(self) -> str:
        return " with ".join(delta.path for delta in self.deltas)


def may_hold_twins(listing: Listing) -> bool:
    """Whether two deltas of a partition are called the same but for their transactions; whatever became of those."""
    deltas = [name for name in listing.directories if "/" not in name and name.startswith(("delta_", "delete_delta_"))]
    return len({name.partition("_v")[0] for name in deltas}) < len(deltas)


def find_twins(deltas: Iterable[DeltaDirectory]) -> tuple[tuple[Result, ...], ...]:
    """The results of each range of which a delta, or a delete delta, is there more than once; older ones first.

    :param deltas: that a reader reads; see :attr:`~airflow_provider_acid.acid.directory.AcidDirectory.deltas`.
    """
    ranges: dict[tuple[int, int, int], list[DeltaDirectory]] = defaultdict(list)
    for delta in deltas:
        name = delta.name
        ranges[name.min_write_id, name.max_write_id, name.statement_id].append(delta)
    return tuple(_by_txn(found) for found in ranges.values() if len({one.name.is_delete for one in found}) < len(found))


def _by_txn(deltas: Iterable[DeltaDirectory]) -> tuple[Result, ...]:
    found: dict[int, list[DeltaDirectory]] = defaultdict(list)
    for delta in sorted(deltas, key=lambda delta: delta.name.is_delete):
        found[delta.name.visibility_txn_id].append(delta)
    return tuple(Result(txn_id, tuple(found[txn_id])) for txn_id in sorted(found))


def pair_of_compactions(results: tuple[Result, ...]) -> tuple[Result, Result]:
    """The two results of a range, the older transaction's first.

    :raises UnsupportedTableError: they are more, or one of them is not named after a compaction's transaction.
    """
    subject = names_of(results)
    is_double = any(len({delta.name.is_delete for delta in result.deltas}) < len(result.deltas) for result in results)
    if is_double or not all(result.txn_id for result in results):
        raise UnsupportedTableError(subject, "are not all results of compactions", BY_HAND)
    if len(results) > 2:
        raise UnsupportedTableError(subject, "are more than two results of one range", BY_HAND)
    one, other = results
    return one, other


def incomparable(one: Result, other: Result, reason: str) -> RefusedError:
    """The error where neither of two results is proven to hold all that the other holds.

    :param reason: what differs, as the end of a sentence.
    """
    return UnsupportedTableError(names_of((one, other)), reason, BY_HAND)


def names_of(results: Iterable[Result]) -> str:
    """How messages call several results."""
    return " and ".join(map(str, results))
