"""The options of cleaning and housekeeping; a part of the table that :mod:`options` is."""

from __future__ import annotations

from airflow_provider_acid.compaction.settings import CleaningLockAction
from airflow_provider_acid.option import NUMBER, TRUTH, Option, Place, word

CLEANING = (
    Option(
        "worker_timeout_seconds",
        NUMBER,
        "Time after which a silent claim whose transaction is dead is taken back, and a partition in work abandoned.",
        Place.CONFIG | Place.HOUSEKEEPING,
        title="Silent claims (seconds)",
        hive="hive.compactor.worker.timeout",
    ),
    Option(
        "forgotten_after_seconds",
        NUMBER,
        "Age from which a finished compaction that still waits to be cleaned is cleaned by the housekeeping.",
        Place.HOUSEKEEPING,
        21_600.0,
        "Forgotten cleanings (seconds)",
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
)
"""In the order of docs/options.md."""
