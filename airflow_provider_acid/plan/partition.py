"""What planning is told: one partition as one snapshot sees it, the names of the attempt, and what the site allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from airflow_provider_acid.acid.directory import AcidDirectory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_4, Hive
from airflow_provider_acid.acid.write_ids import ValidWriteIdList
from airflow_provider_acid.plan.plan import Column, CopiedStripes, FileFormat, OrcOptions


@dataclass(frozen=True)
class PartitionState:
    """One partition, or one unpartitioned table.

    :param location: URI of its directory.
    :param directory: the partition as ``write_ids``, a compactor's list, sees it.
    :param columns: the table's current columns, in order.
    :param bucketed: whether the table declares buckets (then every file's rows carry the file's number).
    :param flush_lengths: committed bytes by path of each ``_flush_length`` file of the current directories.
    """

    entity: Entity
    location: str
    directory: AcidDirectory
    write_ids: ValidWriteIdList
    columns: tuple[Column, ...]
    bucketed: bool
    table_parameters: Mapping[str, str]
    format: FileFormat = FileFormat.ACID_ORC
    flush_lengths: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class AttemptNames:
    """Names of one attempt at compacting a partition.

    :param attempt: its token.
    :param staging: its staging directory; hidden, hence starting with ``_``.
    :param visibility_txn_id: the compaction's transaction on Hive 4, part of the published names; 0 on Hive 3.
    """

    attempt: str
    staging: str
    visibility_txn_id: int


class MinorPublication(str, Enum):
    """How a minor compaction may be published.

    Readers that do not look at a compaction's transaction (Hive 3, Trino) could misread it: one of inserts and deletes
    takes two renames, between which such readers see deleted rows again, or miss rows; and Trino does not look at the
    write ids of rows, so that a delta of several write ids shows it transactions that its snapshot does not have yet.
    An EXCLUSIVE lock, where it is needed, keeps readers away that take locks.
    """

    UNDER_LOCK = "under_lock"
    LOCK_FREE = "lock_free"
    NEVER = "never"


@dataclass(frozen=True)
class CompactionPolicy:
    """What the site allows.

    :param max_num_delta: most directories that one minor compaction merges (``hive.compactor.max.num.delta``).
    :param mm_allow_originals: whether original files beside the deltas of an insert-only table are part of it
        (``hive.mm.allow.originals``); Hive ignores them otherwise.
    :param rewrite_single_delta: whether a major also rewrites a single delta into a base, as Hive 3 does.
    :param hive: the kind of the metastore.
    :param minor_pairs_on_hive_3: whether, on Hive 3, a minor may make a delta and a delete delta.
    :param stripe_copy: see :class:`~airflow_provider_acid.plan.plan.OrcOptions`, and so for ``small_stripe_share`` and
        ``slice_bytes``.
    """

    max_num_delta: int = 500
    minor_publication: MinorPublication = MinorPublication.UNDER_LOCK
    mm_allow_originals: bool = False
    rewrite_single_delta: bool = False
    hive: Hive = HIVE_4
    minor_pairs_on_hive_3: bool = False
    stripe_copy: CopiedStripes = CopiedStripes.AUTO
    small_stripe_share: float = OrcOptions.small_stripe_share
    slice_bytes: int = OrcOptions.slice_bytes
