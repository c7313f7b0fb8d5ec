"""The options of Airflow's section ``[hive_acid]``: the one place for their defaults, which are Hive's."""

from __future__ import annotations

from dataclasses import dataclass

SECTION = "hive_acid"


@dataclass(frozen=True)
class Option:
    """One option, as ``airflow config`` shows it.

    :param type: ``integer``, ``float``, ``boolean`` or ``string``.
    :param default: its default as text.
    """

    name: str
    description: str
    type: str
    default: str
    example: str | None = None


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
    Option("check_interval", "Seconds between two evaluations of a sensor.", "float", "300"),
    Option(
        "max_num_delta",
        "Deltas that one minor compaction merges at most. Not used as long as every compaction is a major one.",
        "integer",
        "500",
    ),
    Option("worker_timeout", "Seconds after which a silent claim is taken back.", "float", "86400"),
    Option(
        "cleaner_retention_time",
        "Seconds that obsolete directories are kept for readers that open no transaction.",
        "float",
        "0",
    ),
    Option(
        "serve_foreign_requests",
        "Whether requests by ALTER TABLE ... COMPACT or by Hive's Initiator are carried out.",
        "boolean",
        "False",
    ),
    Option("job_queue", "Queue of the cluster for the Spark applications.", "string", "", "compaction"),
    Option("task_retries", "Retries of the tasks of the DAGs that come with this package.", "integer", "2"),
)

DEFAULTS = {option.name: option.default for option in OPTIONS}
