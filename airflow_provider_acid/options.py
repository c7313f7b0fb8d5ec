"""Every option, once: its name, values, default and meaning, Hive's own property, and where it may be set.

From this table come the section ``[hive_acid]`` of Airflow's configuration, the settings, the templated parameters of
sensor and operators, the fields of the trigger forms, and docs/options.md. Defaults are Hive's.
"""

from __future__ import annotations

from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.compaction.settings import CleaningLockAction, CompactionSettings, LockTimeoutAction
from airflow_provider_acid.option import NAMES, NUMBER, OPTIONAL_TEXT, TRUTH, Option, Place, whole, with_defaults, word
from airflow_provider_acid.plan.plan import CopiedStripes
from airflow_provider_acid.plan.thresholds import Thresholds
from airflow_provider_acid.run_options import RUN_OPTIONS

_EVERYWHERE = Place.CONFIG | Place.SENSOR

_TABLE = (
    Option(
        "delta_num_threshold",
        whole(0),
        "Deltas above which a partition is due for minor compaction.",
        _EVERYWHERE,
        title="Deltas allowed",
        hive="hive.compactor.delta.num.threshold",
    ),
    Option(
        "delta_pct_threshold",
        NUMBER,
        "Share of the base's bytes that the deltas must exceed for major compaction.",
        _EVERYWHERE,
        title="Delta share allowed",
        hive="hive.compactor.delta.pct.threshold",
    ),
    Option(
        "aborted_txn_threshold",
        whole(0),
        "Aborted transactions above which a partition is due for major compaction.",
        hive="hive.compactor.aborted.txn.threshold",
    ),
    Option(
        "aborted_txn_time_threshold",
        whole(-1),
        "Age in seconds of an aborted transaction from which a partition is due; -1 for never. Hive 4 alone has it.",
        hive="hive.compactor.aborted.txn.time.threshold",
    ),
    Option(
        "candidates",
        word(Candidates),
        "Which partitions of the selected tables are looked at: all, or (written) only those to which the metastore's "
        "database has writes on record since they were last cleaned, as Hive's Initiator does. That needs "
        "metastore_db_conn_id; docs/performance.md says what may be passed over until the next write.",
        _EVERYWHERE,
        title="Partitions looked at",
    ),
    Option(
        "override_no_auto_compaction",
        TRUTH,
        "Evaluate tables that are named without wildcards although no_auto_compaction is set.",
        Place.SENSOR,
        title="Override no_auto_compaction",
    ),
    Option(
        "serve_foreign_requests",
        TRUTH,
        "Whether requests by ALTER TABLE ... COMPACT or by Hive's Initiator are carried out; else they are reported.",
        _EVERYWHERE,
    ),
    Option(
        "served_pools",
        NAMES,
        "Worker pools whose requests are carried out, too; on Hive 4 with the metastore's database at hand.",
    ),
    Option(
        "check_interval_seconds",
        NUMBER,
        "Time between two looks of a sensor.",
        Place.CONFIG,
        300.0,
        hive="hive.compactor.check.interval",
    ),
    Option(
        "listing_threads",
        whole(),
        "Partitions whose directories a sensor lists at the same time, where listing is waiting; 1 for never.",
    ),
    Option(
        "max_num_delta",
        whole(),
        "Directories that one minor compaction merges at most; the rest is left to the next.",
        Place.CONFIG | Place.COMPACTION,
        hive="hive.compactor.max.num.delta",
    ),
    Option(
        "rewrite_single_delta",
        TRUTH,
        "Whether a partition that is a single delta is rewritten into a base, as Hive 3 does.",
        Place.COMPACTION,
    ),
    Option(
        "minor_publish_lock",
        TRUTH,
        "Whether a minor compaction may take an EXCLUSIVE lock for its publication: one of inserts and deletes always "
        "needs it, any other while older transactions have locks there, since readers that ignore a compaction's "
        "transaction (Trino) would see other rows than before for a moment. Without it minors are done as majors, and "
        "nothing is compacted on object stores, where every result of several files needs it.",
        Place.CONFIG | Place.COMPACTION,
    ),
    Option(
        "minor_lock_wait_seconds",
        NUMBER,
        "Longest wait for the EXCLUSIVE lock under which a minor is published, and for the one under which what a dead "
        "attempt published is removed. It is asked for when nobody else has a lock there, at the latest for the last "
        "10 of these seconds; while it waits behind a long query, all new queries of the partition wait, too. On Hive "
        "3.1 also the longest wait for readers that are older than the first base of a partition.",
        Place.CONFIG | Place.COMPACTION,
        title="Wait for the lock (seconds)",
    ),
    Option(
        "minor_lock_timeout_action",
        word(LockTimeoutAction),
        "What follows when the lock under which a minor is published is not granted in time: major (merge anew into a "
        "base) or refuse (fail the task).",
        Place.CONFIG | Place.COMPACTION,
        title="If the lock is not granted",
    ),
    Option(
        "readers_honour_visibility",
        TRUTH,
        "Publish minors, and on object stores majors, without a lock: right for Hive 4 alone, while any other reader "
        "(Trino) may miss rows or see deleted ones, until a job that died half-way is followed by another.",
        Place.CONFIG | Place.COMPACTION,
    ),
    Option(
        "minor_pairs_on_hive_3",
        TRUTH,
        "Whether minors of deletes are done on Hive 3.1, with inserts under that lock; else they are majors. If a job "
        "dies between the two renames, all readers see wrong rows from the time the metastore takes its lock away "
        "(metastore.txn.timeout) until the partition is compacted again; so they do where a later transaction deletes "
        "a row again whose delete was merged.",
    ),
    Option(
        "mm_allow_originals",
        TRUTH,
        "Whether original files in insert-only tables are data. Where it is off Hive ignores them, and tables that "
        "have some are refused.",
        hive="hive.mm.allow.originals",
    ),
    Option(
        "stripe_copy",
        word(CopiedStripes),
        "Which stripes of full-ACID files are copied as bytes instead of decoded: auto (those that lose no row and are "
        "not small), always (also small ones), never.",
    ),
    Option(
        "small_stripe_share",
        NUMBER,
        "Share of the table's stripe size; smaller stripes that follow each other are rewritten together.",
    ),
    Option(
        "slice_bytes",
        whole(),
        "About so many bytes of a bucket's stripes one Spark task decodes and writes anew, or a quarter to give every "
        "task slot something to do. A bucket with more is cut, so that no task needs memory for all of it.",
    ),
    Option(
        "exclusive_locations",
        NAMES,
        "Patterns of places, e.g. s3a://warehouse/sales/*, each of one table or partition alone; * also stands for "
        "slashes. Asked only outside of usual places, where nothing else tells who lies there.",
    ),
    Option(
        "worker_timeout_seconds",
        NUMBER,
        "Time after which a silent claim whose transaction is dead is taken back, and a partition in work abandoned.",
        Place.CONFIG | Place.HOUSEKEEPING,
        title="Claims end after silence of (seconds)",
        hive="hive.compactor.worker.timeout",
    ),
    Option(
        "forgotten_after_seconds",
        NUMBER,
        "Age from which a finished compaction that still waits to be cleaned is cleaned by the housekeeping.",
        Place.HOUSEKEEPING,
        21_600.0,
        "Cleanings are forgotten after (seconds)",
    ),
    Option(
        "repair_twins",
        TRUTH,
        "Whether of two compactions' results of one range of write ids, whose rows readers see twice (HIVE-29210), the "
        "one is removed of which all rows are proven to be in the other; else the pair is only reported.",
        Place.HOUSEKEEPING,
        False,
        "Remove twin results",
    ),
    Option(
        "cleaning_deadline_seconds",
        NUMBER,
        "Longest wait for readers, before a cleaning is left to the next run.",
        Place.CONFIG | Place.CLEANER,
        21_600.0,
        "Wait for readers (seconds)",
        since="0.2.0",
    ),
    Option("poll_seconds", NUMBER, "Time between two looks at the metastore.", Place.CLEANER, 10.0),
    Option(
        "cleaner_retention_seconds",
        NUMBER,
        "How long obsolete directories are kept for readers that open no transaction. On Hive 3.1 those that take no "
        "lock either (spark-acid) have nothing but this time; make it longer than their longest query.",
        Place.CONFIG | Place.CLEANER,
        hive="hive.compactor.cleaner.retention.time.seconds",
    ),
    Option(
        "keep_replaced_hours",
        NUMBER,
        "How long what a compaction replaced is kept after its commit. Until then the DAG acid_undo takes the result "
        "back, where nothing was compacted on top of it; after that the housekeeping deletes what is kept.",
        default=0.0,
        since="0.2.0",
        example="48",
    ),
    Option(
        "cleaner_lock_wait_seconds",
        NUMBER,
        "Longest time for which a cleaning, which deletes under the EXCLUSIVE lock, makes readers and writers of the "
        "partition wait; it does not ask for the lock while somebody has had one there for longer than this.",
    ),
    Option(
        "cleaner_lock_timeout_action",
        word(CleaningLockAction),
        "What follows where the lock is not to be had: wait (until the cleaning's deadline; nothing is deleted), "
        "delete (beside those who have had a lock for longer than that; should one of them list again, a query fails, "
        "and a simple one of Hive 4 finds no rows) or by_version (wait on Hive 4; delete on Hive 3.1, where the "
        "partition is not compacted while a cleaning waits).",
    ),
    Option(
        "health_location",
        OPTIONAL_TEXT,
        "URI of a directory for the page 'Hive ACID' of Airflow's UI: what is known of partitions, and the history of "
        "compactions. Its parent must exist; HDFS and S3 are reached as the metastore's connection says.",
        default=None,
        example="hdfs://namenode/airflow/hive-acid-health",
    ),
)

OPTIONS = {option.name: option for option in with_defaults((*RUN_OPTIONS, *_TABLE), CompactionSettings(), Thresholds())}
"""By name."""


def parameters_of(place: Place) -> tuple[str, ...]:
    """The options that may be set in a place; those of a task are its templated parameters."""
    return tuple(option.name for option in OPTIONS.values() if place in option.places)
