"""Everything that can be set about evaluating, compacting and cleaning, with Hive's defaults."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.plan.partition import CompactionPolicy, MinorPublication
from airflow_provider_acid.plan.plan import CopiedStripes, OrcOptions
from airflow_provider_acid.plan.thresholds import Thresholds

LOCK_QUEUE_SECONDS = 10.0
"""Longest time that an EXCLUSIVE lock waits in the metastore's queue, where new readers wait behind it."""


class LockTimeoutAction(str, Enum):
    """What becomes of a minor compaction whose EXCLUSIVE lock is not granted in time."""

    MAJOR = "major"
    REFUSE = "refuse"


class CleaningLockAction(str, Enum):
    """What becomes of a cleaning where somebody reads the partition all the time.

    By default it waits on Hive 4, where a reader may find no rows beside it, and where no compaction waits for it. On
    Hive 3, where such a reader fails loudly, and the partition is not compacted meanwhile, it deletes.
    """

    BY_VERSION = "by_version"
    WAIT = "wait"
    DELETE = "delete"


@dataclass(frozen=True)
class CompactionSettings:
    """Settings of one sensor, operator or cleaner.

    A setting that is not here, and each threshold, is the option of its name (:mod:`~airflow_provider_acid.options`).

    :param thresholds: when a partition is due.
    :param run_directory: URI of a directory that operator and Spark driver reach, for plans and results; None for the
        user's home directory on the first table's store.
    :param transaction_timeout_seconds: a transaction without a heartbeat for longer is taken for dead; None for
        the metastore's own ``metastore.txn.timeout``.
    :param heartbeat_seconds: time between two heartbeats; None for half the transaction time-out, as Hive's
        Worker does it.
    :param lock_wait_seconds: longest wait for the SHARED_READ lock on the partition.
    :param storages: opens the tables' locations.
    """

    thresholds: Thresholds = field(default_factory=Thresholds)
    candidates: Candidates = Candidates.ALL
    serve_foreign_requests: bool = True
    override_no_auto_compaction: bool = False
    rewrite_single_delta: bool = False
    max_num_delta: int = 500
    minor_publish_lock: bool = True
    minor_lock_wait_seconds: float = 60.0
    minor_lock_timeout_action: LockTimeoutAction = LockTimeoutAction.MAJOR
    readers_honour_visibility: bool = False
    minor_pairs_on_hive_3: bool = False
    mm_allow_originals: bool = False
    run_directory: str | None = None
    transaction_timeout_seconds: float | None = None
    heartbeat_seconds: float | None = None
    lock_wait_seconds: float = 60.0
    worker_timeout_seconds: float = 86_400.0
    cleaner_retention_seconds: float = 0.0
    keep_replaced_hours: float = 0.0
    cleaner_lock_wait_seconds: float = 30.0
    cleaner_lock_timeout_action: CleaningLockAction = CleaningLockAction.BY_VERSION
    listing_threads: int = 8
    stripe_copy: CopiedStripes = CopiedStripes.AUTO
    small_stripe_share: float = OrcOptions.small_stripe_share
    slice_bytes: int = OrcOptions.slice_bytes
    exclusive_locations: tuple[str, ...] = ()

    def for_what_is_asked_by_name(self) -> CompactionSettings:
        """The same for tables that somebody names: all their partitions are looked at, and nothing keeps them away."""
        return replace(self, candidates=Candidates.ALL, override_no_auto_compaction=True)

    served_pools: tuple[str, ...] = ()
    storages: Storages = field(default_factory=Storages)

    @property
    def keep_replaced_seconds(self) -> float:
        """How long after its commit nothing is deleted of what a compaction replaced."""
        return self.keep_replaced_hours * 3600

    def policy(self, hive: Hive) -> CompactionPolicy:
        """What planning has to know of these settings."""
        publication = MinorPublication.UNDER_LOCK if self.minor_publish_lock else MinorPublication.NEVER
        if self.readers_honour_visibility and hive.publishes_by_commit:
            publication = MinorPublication.LOCK_FREE
        return CompactionPolicy(
            max_num_delta=self.max_num_delta,
            minor_publication=publication,
            mm_allow_originals=self.mm_allow_originals,
            rewrite_single_delta=self.rewrite_single_delta,
            hive=hive,
            minor_pairs_on_hive_3=self.minor_pairs_on_hive_3,
            stripe_copy=self.stripe_copy,
            small_stripe_share=self.small_stripe_share,
            slice_bytes=self.slice_bytes,
        )
