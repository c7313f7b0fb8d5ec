"""Every option, once: its name, values, default and meaning, Hive's own property, and where it may be set.

From this table come the section ``[hive_acid]`` of Airflow's configuration, the settings, the templated parameters of
sensor and operators, the fields of the trigger forms, and docs/options.md. Defaults are Hive's.
"""

from __future__ import annotations

from airflow_provider_acid.cleaning_options import CLEANING
from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.compaction.evaluate.demand import DemandedType
from airflow_provider_acid.compaction.settings import CompactionSettings, LockTimeoutAction
from airflow_provider_acid.option import (
    MOST_IN_BATCH,
    MOST_IN_RUN,
    NAMES,
    NO_OR_PATTERNS,
    NUMBER,
    OPTIONAL_NUMBER,
    OPTIONAL_TEXT,
    PATTERNS,
    TEXT,
    TIME_WINDOW,
    TIME_ZONE,
    TRUTH,
    Option,
    Place,
    whole,
    with_defaults,
    word,
)
from airflow_provider_acid.plan.plan import CopiedStripes
from airflow_provider_acid.plan.thresholds import Thresholds

_EVERYWHERE = Place.CONFIG | Place.SENSOR
_OF_ONE_TABLE = Place.TABLE_PLAN | Place.UNDO


_TABLE = (
    Option(
        "tables",
        PATTERNS,
        "Patterns of tables, e.g. sales.orders or web.*.",
        _EVERYWHERE | Place.HOUSEKEEPING,
        ("default.*",),
        "Tables",
        example="sales.*, web.*",
        since="0.2.0",
    ),
    Option(
        "exclude",
        NO_OR_PATTERNS,
        "Patterns of tables that are left out although they are included.",
        _EVERYWHERE | Place.HOUSEKEEPING,
        (),
        "Tables to leave out",
        example="sales.tmp_*",
        since="0.2.0",
    ),
    Option(
        "fail_on_unmatched_patterns",
        TRUTH,
        "Whether a pattern that matches no table, or leaves none out, is a failure and not a warning in the log.",
        _EVERYWHERE,
        False,
        "Fail on unmatched patterns",
        since="0.2.0",
    ),
    Option("database", TEXT, "The table's database.", _OF_ONE_TABLE, "default", "Database"),
    Option("table", TEXT, "The table's name, without the database.", _OF_ONE_TABLE, title="Table"),
    Option(
        "partition",
        OPTIONAL_TEXT,
        "One partition as SHOW PARTITIONS spells it, e.g. ds=2026-01-01/region=eu; empty for all partitions, or for a "
        "table that has none.",
        _OF_ONE_TABLE,
        None,
        "Partition",
    ),
    Option(
        "type",
        word(DemandedType),
        "auto: by the thresholds; minor or major: so, whatever the thresholds say.",
        Place.TABLE_PLAN,
        DemandedType.AUTO,
        "Type",
    ),
    Option(
        "decide_only",
        TRUTH,
        "A dry run: the decisions are shown in the log of the first task, and nothing is changed.",
        Place.SENSOR | _OF_ONE_TABLE,
        False,
        "Dry run",
    ),
    Option(
        "delta_num_threshold",
        whole(0),
        "Deltas above which a partition is due for minor compaction.",
        _EVERYWHERE,
        title="Deltas",
        hive="hive.compactor.delta.num.threshold",
    ),
    Option(
        "delta_pct_threshold",
        NUMBER,
        "Share of the base's bytes that the deltas must exceed for major compaction.",
        _EVERYWHERE,
        title="Delta share",
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
        "time_window",
        TIME_WINDOW,
        "Hours in which compactions begin, e.g. 22:00-06:00; what is in work at the end is finished; empty for all.",
        _EVERYWHERE | Place.COMPACTION,
        None,
        "Time window",
        example="22:00-06:00",
        since="0.2.0",
    ),
    Option(
        "time_zone",
        TIME_ZONE,
        "Time zone of the time window.",
        _EVERYWHERE | Place.COMPACTION,
        "UTC",
        "Time zone",
        example="Europe/Berlin",
        since="0.2.0",
    ),
    Option(
        "max_partitions",
        whole(1, MOST_IN_RUN),
        "Most partitions of one run, those first whose deltas cost readers most; the next run takes the others.",
        _EVERYWHERE | Place.TABLE_PLAN | Place.HOUSEKEEPING,
        MOST_IN_RUN,
        "Most partitions",
        since="0.2.0",
    ),
    Option(
        "max_gib",
        OPTIONAL_NUMBER,
        "Most input of all compactions of one run, in GiB; the first partition is taken although it has more; empty: "
        "no bound.",
        _EVERYWHERE,
        None,
        "Most data (GiB)",
        example="500",
        since="0.2.0",
    ),
    Option(
        "batch_partitions",
        whole(1, MOST_IN_BATCH),
        "Most partitions in one Spark application; what reads more than 64 GiB is divided before.",
        _EVERYWHERE | Place.TABLE_PLAN,
        MOST_IN_BATCH,
        "Batch",
        since="0.2.0",
    ),
    Option(
        "skip_when_nothing_due",
        TRUTH,
        "Skip the task, and what follows, instead of waiting; also outside the time window.",
        Place.SENSOR,
        False,
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
        "Longest wait for that lock, and for the one under which what a dead attempt published is removed. It is asked "
        "for when nobody else has a lock there, at the latest for the last 10 of these seconds; while it waits behind "
        "a long query, all new queries of the partition wait, too. On Hive 3.1 also the longest wait for readers that "
        "are older than the first base of a partition.",
        Place.CONFIG | Place.COMPACTION,
        title="Wait for the lock (seconds)",
    ),
    Option(
        "minor_lock_timeout_action",
        word(LockTimeoutAction),
        "What follows when that lock is not granted in time: major (merge anew into a base) or refuse (fail the task).",
        Place.CONFIG | Place.COMPACTION,
        title="Without the lock",
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
        "Whether minors of inserts and deletes are done on Hive 3.1, under that lock; else they are majors. If a job "
        "dies between the two renames, all readers see wrong rows from the time the metastore takes its lock away "
        "(metastore.txn.timeout) until the partition is compacted again.",
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
    *CLEANING,
    Option(
        "health_location",
        OPTIONAL_TEXT,
        "URI of a directory for the page 'Hive ACID' of Airflow's UI: what is known of partitions, and the history of "
        "compactions. Its parent must exist; HDFS and S3 are reached as the metastore's connection says.",
        default=None,
        example="hdfs://namenode/airflow/hive-acid-health",
    ),
    Option(
        "job_queue",
        OPTIONAL_TEXT,
        "Queue of the cluster for the Spark applications.",
        default=None,
        hive="hive.compactor.job.queue",
        example="compaction",
    ),
    Option("task_retries", whole(0), "Retries of the tasks of the DAGs that come with this package.", default=2),
    Option(
        "schedule",
        OPTIONAL_TEXT,
        "When acid_compaction runs, in UTC: a cron expression, or a preset such as @daily; None for only by hand.",
        default="@hourly",
        example="30 1 * * *",
        since="0.2.0",
    ),
    Option(
        "hive_acid_conn_id",
        TEXT,
        "Airflow connection to the Hive metastore.",
        ~Place.CONFIG,
        "hive_acid_default",
        "Connection",
    ),
)

OPTIONS = {option.name: option for option in with_defaults(_TABLE, CompactionSettings(), Thresholds())}
"""By name."""


def parameters_of(place: Place) -> tuple[str, ...]:
    """The options that may be set in a place; those of a task are its templated parameters."""
    return tuple(option.name for option in OPTIONS.values() if place in option.places)
