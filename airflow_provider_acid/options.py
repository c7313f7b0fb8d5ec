"""The options of Airflow's section ``[hive_acid]``: the one place for their defaults, which are Hive's."""

from __future__ import annotations

from dataclasses import dataclass

SECTION = "hive_acid"


@dataclass(frozen=True)
class Option:
    """One option, as ``airflow config`` shows it.

    :param type: ``integer``, ``float``, ``boolean`` or ``string``.
    :param default: its default as text.
    :param since: the release of this package that brought it.
    """

    name: str
    description: str
    type: str
    default: str
    example: str | None = None
    since: str = "0.1.0"


OPTIONS = (
    Option("delta_num_threshold", "Deltas above which a partition is due for minor compaction.", "integer", "10"),
    Option(
        "delta_pct_threshold",
        "Share of the base's bytes that the deltas must exceed for major compaction.",
        "float",
        "0.1",
    ),
    Option("aborted_txn_threshold", "Aborted transactions that make a partition due.", "integer", "1000"),
    Option(
        "aborted_txn_time_threshold",
        "Age in seconds of an aborted transaction that makes a partition due; negative for never.",
        "integer",
        "43200",
    ),
    Option(
        "candidates",
        "Which partitions of the selected tables a sensor looks at: all, or (written) only those to which the "
        "metastore's database has writes on record since they were last cleaned, as Hive's Initiator does. That needs "
        "metastore_db_conn_id; docs/performance.md says what may be passed over until the next write.",
        "string",
        "all",
    ),
    Option("check_interval", "Seconds between two evaluations of a sensor.", "float", "300"),
    Option(
        "listing_threads",
        "Partitions whose directories a sensor lists at the same time, where listing is waiting; 1 for never.",
        "integer",
        "8",
    ),
    Option(
        "exclusive_locations",
        "Patterns of places, e.g. s3a://warehouse/sales/*, in each of which lies one table or partition and nobody "
        "else's, with blanks or commas between them; * also stands for slashes. Asked only for a table or partition "
        "outside of its usual place, where neither the metastore's database nor its catalogue can tell who else lies "
        "there.",
        "string",
        "",
    ),
    Option(
        "max_num_delta",
        "Directories that one minor compaction merges at most; the rest is left to the next.",
        "integer",
        "500",
    ),
    Option(
        "minor_publish_lock",
        "Whether a minor compaction may take an EXCLUSIVE lock for its publication: one of inserts and deletes always "
        "needs it, any other while older transactions have locks there, since readers that ignore a compaction's "
        "transaction (Trino) would see other rows than before for a moment. Without it minors are done as majors, and "
        "nothing is compacted on object stores, where every result of several files needs it.",
        "boolean",
        "True",
    ),
    Option(
        "minor_lock_wait_seconds",
        "Longest wait for that lock. It is asked for when nobody else has a lock there, at the latest for the last 10 "
        "of these seconds; while it waits behind a long query, all new queries of the partition wait, too.",
        "float",
        "60",
    ),
    Option(
        "minor_lock_timeout_action",
        "What follows when that lock is not granted in time: major (merge anew into a base) or refuse (fail the task).",
        "string",
        "major",
    ),
    Option(
        "readers_honour_visibility",
        "Publish minors, and on object stores majors, without a lock: right for Hive 4 alone, while any other reader "
        "(Trino) may miss rows or see deleted ones, until a job that died half-way is followed by another.",
        "boolean",
        "False",
    ),
    Option(
        "minor_pairs_on_hive_3",
        "Whether minors of inserts and deletes are done on Hive 3.1, under that lock; else they are majors. If a "
        "job dies between the two renames, all readers see wrong rows from the time the metastore takes its lock away "
        "(metastore.txn.timeout) until the partition is compacted again.",
        "boolean",
        "False",
    ),
    Option(
        "mm_allow_originals",
        "What hive.mm.allow.originals says in Hive's own configuration: whether original files in insert-only tables "
        "are data. Where it is off Hive ignores them, and tables that have some are refused.",
        "boolean",
        "False",
    ),
    Option(
        "stripe_copy",
        "Which stripes of full-ACID files are copied as bytes instead of decoded: auto (those that lose no row and are "
        "not small), always (also small ones), never.",
        "string",
        "auto",
    ),
    Option(
        "small_stripe_share",
        "Share of the table's stripe size; smaller stripes that follow each other are rewritten together.",
        "float",
        "0.03125",
    ),
    Option(
        "slice_bytes",
        "About so many bytes of a bucket's stripes one Spark task decodes and writes anew, or less (a quarter) to give "
        "every task slot something to do. A bucket with more of them is cut, so that several tasks work on it and "
        "none needs memory for all of it.",
        "integer",
        "134217728",
    ),
    Option("worker_timeout", "Seconds after which a silent claim is taken back.", "float", "86400"),
    Option(
        "cleaner_retention_time",
        "Seconds that obsolete directories are kept for readers that open no transaction. On Hive 3.1 those that take "
        "no lock either (spark-acid) have nothing but this time; make it longer than their longest query.",
        "float",
        "0",
    ),
    Option(
        "cleaner_lock_wait_seconds",
        "Longest time for which a cleaning makes new readers and writers of the partition wait. It deletes under the "
        "EXCLUSIVE lock, for queries of Hive stumble over directories that go while they list; it does not ask for it "
        "while somebody has had a lock there for longer than this.",
        "float",
        "30",
    ),
    Option(
        "cleaner_lock_timeout_action",
        "What follows where the lock is not to be had: wait (until the cleaning's deadline; nothing is deleted), "
        "delete (beside those who have had a lock for longer than that; should one of them list again, a query fails, "
        "and a simple one of Hive 4 finds no rows) or by_version (wait on Hive 4; delete on Hive 3.1, where the "
        "partition is not compacted while a cleaning waits).",
        "string",
        "by_version",
    ),
    Option(
        "serve_foreign_requests",
        "Whether requests by ALTER TABLE ... COMPACT or by Hive's Initiator are carried out.",
        "boolean",
        "False",
    ),
    Option(
        "health_location",
        "URI of a directory that Airflow's workers and API server reach. What is known of partitions, and the history "
        "of compactions, is kept there for the page 'Hive ACID' of Airflow's UI; empty: nothing is, and the page says "
        "so. Its parent must exist; HDFS and S3 are reached as the metastore's connection says.",
        "string",
        "",
        "hdfs://namenode/airflow/hive-acid-health",
    ),
    Option("job_queue", "Queue of the cluster for the Spark applications.", "string", "", "compaction"),
    Option("task_retries", "Retries of the tasks of the DAGs that come with this package.", "integer", "2"),
    Option(
        "fail_on_unmatched_patterns",
        "Whether a sensor fails where a pattern of its tables matches no table, or an excluded one leaves none out; "
        "else it warns.",
        "boolean",
        "False",
        since="0.2.0",
    ),
    Option(
        "tables",
        "Patterns of the tables that the DAG acid_compaction looks at, separated by commas. This and the options below "
        "are what that DAG does by itself, and what its trigger form starts with; they are read when the DAG file is "
        "parsed.",
        "string",
        "default.*",
        "sales.*, web.*",
        since="0.2.0",
    ),
    Option(
        "exclude",
        "Patterns of tables that acid_compaction leaves out although they are included.",
        "string",
        "",
        "sales.tmp_*",
        since="0.2.0",
    ),
    Option(
        "schedule",
        "When acid_compaction runs, in UTC: a cron expression, or a preset such as @daily; None for only by hand.",
        "string",
        "@hourly",
        "30 1 * * *",
        since="0.2.0",
    ),
    Option(
        "time_window",
        "Hours in which compactions of acid_compaction begin; empty for all.",
        "string",
        "",
        "22:00-06:00",
        since="0.2.0",
    ),
    Option("time_zone", "Time zone of that time window.", "string", "UTC", "Europe/Berlin", since="0.2.0"),
    Option(
        "max_partitions", "Most partitions of one run of acid_compaction, 1 to 1000.", "integer", "1000", since="0.2.0"
    ),
    Option(
        "max_gib",
        "Most input of all compactions of one run of acid_compaction, in GiB; empty for no bound.",
        "string",
        "",
        "500",
        since="0.2.0",
    ),
    Option(
        "batch_partitions",
        "Partitions in one Spark application of acid_compaction, 1 to 1000.",
        "integer",
        "50",
        since="0.2.0",
    ),
    Option(
        "cleaning_deadline_hours",
        "Longest wait of acid_compaction for readers, before a cleaning is left to its next run.",
        "float",
        "6",
        since="0.2.0",
    ),
)

DEFAULTS = {option.name: option.default for option in OPTIONS}
