"""Everything that can be set about evaluating, compacting and cleaning, with Hive's defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
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

    :param thresholds: when a partition is due (``hive.compactor.delta.num.threshold`` and its siblings).
    :param candidates: which partitions of the selected tables are looked at; ``written`` needs the metastore's
        database, and passes over what :class:`~airflow_provider_acid.compaction.candidates.Candidates` says.
    :param serve_foreign_requests: whether requests made by users (``ALTER TABLE … COMPACT``) or by Hive's
        Initiator are carried out; otherwise they are only reported.
    :param override_no_auto_compaction: whether tables named by an include list are evaluated although
        ``no_auto_compaction`` is set.
    :param max_deltas: most directories that one minor compaction merges (``hive.compactor.max.num.delta``).
    :param publish_lock: whether a minor compaction may take an EXCLUSIVE lock for its publication, which it needs
        where it has inserts and deletes, or where older transactions hold locks there; without it minors are done as
        majors. On object stores every result of several files needs it, and without it nothing is compacted.
    :param publish_lock_wait_seconds: longest wait for that EXCLUSIVE lock, and for the one under which what a dead
        attempt published is removed. It is asked for as soon as nobody else has a lock there, or for the last of
        these seconds, when new readers wait behind it. On Hive 3, also the longest wait for readers that are older
        than the first base of a partition, which they could not read beside.
    :param publish_lock_timeout_action: what follows when it is not granted by then.
    :param readers_honour_visibility: every reader checks a compaction's transaction as Hive 4 does (Trino does not),
        so that nothing needs a lock; without effect on Hive 3, which has no such transaction.
    :param minor_pairs_on_hive_3: whether a minor of inserts and deletes is done on Hive 3 at all: where it dies between
        its two renames, every reader sees wrong rows from the time the metastore takes its lock away until the next
        attempt.
    :param insert_only_originals: whether Hive takes original files in insert-only tables for data
        (``hive.mm.allow.originals``).
    :param run_directory: URI of a directory that operator and Spark driver reach, for plans and results; None for the
        user's home directory on the first table's store.
    :param rewrite_single_delta: whether a single delta is rewritten into a base, as Hive 3 does; Hive 4 refuses.
    :param transaction_timeout_seconds: a transaction without a heartbeat for longer is taken for dead; None for
        the metastore's own ``metastore.txn.timeout``.
    :param heartbeat_seconds: time between two heartbeats; None for half the transaction time-out, as Hive's
        Worker does it.
    :param lock_wait_seconds: longest wait for the SHARED_READ lock on the partition.
    :param worker_timeout_seconds: ``hive.compactor.worker.timeout``; a partition that takes longer is abandoned.
    :param retention_seconds: how long obsolete directories are kept for readers that open no transaction; on Hive 3.1
        those that have no lock either, as spark-acid's, are covered by nothing else.
    :param cleaning_lock_wait_seconds: longest wait for the EXCLUSIVE lock under which is deleted, and so the longest
        time for which a cleaning makes new readers wait; it is not asked for while somebody has had a lock for longer.
    :param cleaning_lock_timeout_action: what follows where it is not to be had, when all who have one have had it for
        at least that long.
    :param listing_threads: threads that list partitions in an evaluation, where that is waiting; 1 for none.
    :param stripe_copy: which stripes of full-ACID files are copied as bytes.
    :param small_stripe_share: of the table's stripe size; smaller stripes beside each other are rewritten together.
    :param slice_bytes: about so many bytes of a bucket's stripes one Spark task rewrites.
    :param exclusive_locations: patterns of places that only one table or partition has; asked where nothing else tells.
    :param storages: opens the tables' locations.
    """

    thresholds: Thresholds = field(default_factory=Thresholds)
    candidates: Candidates = Candidates.ALL
    serve_foreign_requests: bool = False
    override_no_auto_compaction: bool = False
    rewrite_single_delta: bool = False
    max_deltas: int = 500
    publish_lock: bool = True
    publish_lock_wait_seconds: float = 60.0
    publish_lock_timeout_action: LockTimeoutAction = LockTimeoutAction.MAJOR
    readers_honour_visibility: bool = False
    minor_pairs_on_hive_3: bool = False
    insert_only_originals: bool = False
    run_directory: str | None = None
    transaction_timeout_seconds: float | None = None
    heartbeat_seconds: float | None = None
    lock_wait_seconds: float = 60.0
    worker_timeout_seconds: float = 86_400.0
    retention_seconds: float = 0.0
    cleaning_lock_wait_seconds: float = 30.0
    cleaning_lock_timeout_action: CleaningLockAction = CleaningLockAction.BY_VERSION
    listing_threads: int = 8
    stripe_copy: CopiedStripes = CopiedStripes.AUTO
    small_stripe_share: float = OrcOptions.small_stripe_share
    slice_bytes: int = OrcOptions.slice_bytes
    exclusive_locations: tuple[str, ...] = ()
    storages: Storages = field(default_factory=Storages)

    def policy(self, hive: Hive) -> CompactionPolicy:
        """What planning has to know of these settings."""
        publication = MinorPublication.UNDER_LOCK if self.publish_lock else MinorPublication.NEVER
        if self.readers_honour_visibility and hive.publishes_by_commit:
            publication = MinorPublication.LOCK_FREE
        return CompactionPolicy(
            max_deltas=self.max_deltas,
            minor_publication=publication,
            insert_only_originals=self.insert_only_originals,
            rewrite_single_delta=self.rewrite_single_delta,
            hive=hive,
            pairs_by_rename=self.minor_pairs_on_hive_3,
            stripe_copy=self.stripe_copy,
            small_stripe_share=self.small_stripe_share,
            slice_bytes=self.slice_bytes,
        )
