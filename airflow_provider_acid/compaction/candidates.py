"""Which partitions an evaluation looks at: all, or those that the metastore recorded writes to."""

from __future__ import annotations

from collections.abc import Iterable, Set
from enum import Enum

from airflow_provider_acid.acid.entity import whatever_spelling


class Candidates(str, Enum):
    """Which partitions of the selected tables an evaluation looks at.

    ``written`` is what Hive's Initiator does (``CompactionTxnHandler.findPotentialCompactions``): those that the
    metastore's database names in COMPLETED_TXN_COMPONENTS, or for an aborted transaction in TXN_COMPONENTS. Cleaning a
    compaction removes the records of its partition up to the write id that it was begun at. So these are not found,
    until the next write to them; they are compacted later, and no row is wrong:

    - deltas of a partition that has none of these records any more: what a minor compaction left since it merges at
      most ``max_num_delta``, and whatever was cleaned by a Cleaner of Hive that had no such write id (Hive then
      removes all records);
    - a partition that becomes due because a threshold was lowered after its records went;
    - files that came without a transaction of their own that wrote there: originals of a converted table, replication,
      copies made by hand, TRUNCATE (what it made obsolete waits for the next compaction).
    """

    ALL = "all"
    WRITTEN = "written"


def written_partitions(names: Iterable[str], recorded: Set[str | None]) -> list[str]:
    """The partitions of one partitioned table to which writes are recorded, in the order of ``names``.

    What differs only by case or by escapes counts as one (:func:`whatever_spelling`), for a metastore's ``lock``
    changes the names of an INSERT that names its partitions. Of partitions that differ by nothing else all are taken.

    :param names: all partitions, as the metastore spells them.
    :param recorded: the names in the records. None stands for a write that was recorded for the table alone (on
        Hive 4 an INSERT with dynamic partitions that ended before it named them): it may be anywhere, so all are taken.
    """
    if None in recorded:
        return list(names)
    written = {whatever_spelling(name) for name in recorded if name is not None}
    return [name for name in names if whatever_spelling(name) in written]
