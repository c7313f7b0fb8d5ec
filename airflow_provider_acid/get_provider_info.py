"""What Airflow asks a provider package about itself."""

from __future__ import annotations

from typing import TypedDict


class _Option(TypedDict):
    description: str
    version_added: str
    type: str
    example: str | None
    default: str


def _option(description: str, kind: str, default: str, example: str | None = None) -> _Option:
    return {
        "description": description,
        "version_added": "0.1.0",
        "type": kind,
        "example": example,
        "default": default,
    }


def get_provider_info() -> dict[str, object]:
    """The provider's description; see Airflow's ``provider_info.schema.json``."""
    return {
        "package-name": "airflow-provider-acid",
        "name": "Hive ACID",
        "description": "Compacts Apache Hive ACID tables with PySpark: sensors, operators and a cleaner.",
        "connection-types": [_connection_type()],
        "hooks": [{"integration-name": "Hive ACID", "python-modules": ["airflow_provider_acid.hooks.metastore"]}],
        "sensors": [{"integration-name": "Hive ACID", "python-modules": ["airflow_provider_acid.sensors.compaction"]}],
        "operators": [
            {
                "integration-name": "Hive ACID",
                "python-modules": [
                    "airflow_provider_acid.operators.compaction",
                    "airflow_provider_acid.operators.cleaner",
                ],
            }
        ],
        "triggers": [{"integration-name": "Hive ACID", "python-modules": ["airflow_provider_acid.triggers.cleaner"]}],
        "integrations": [
            {
                "integration-name": "Hive ACID",
                "external-doc-url": "https://cwiki.apache.org/confluence/display/Hive/Hive+Transactions",
                "tags": ["apache"],
            }
        ],
        "config": {
            "hive_acid": {
                "description": "Compaction of Hive ACID tables; names and defaults are those of hive.compactor.*.",
                "options": _options(),
            }
        },
    }


def _connection_type() -> dict[str, object]:
    return {
        "connection-type": "hive_acid",
        "hook-name": "Hive ACID metastore",
        "hook-class-name": "airflow_provider_acid.hooks.metastore.AcidMetastoreHook",
        "ui-field-behaviour": {
            "hidden-fields": ["schema", "login", "password", "extra"],
            "relabeling": {"host": "Metastore hosts", "port": "Thrift port"},
            "placeholders": {"host": "metastore-1.example.org,metastore-2.example.org:9084", "port": "9083"},
        },
        "conn-fields": {
            "timeout_seconds": {
                "label": "Time-out (seconds)",
                "description": "Longest wait for one answer of the metastore",
                "schema": {"type": ["number", "null"], "default": 60},
            },
            "user": {
                "label": "User",
                "description": "Name that transactions and locks are opened under; default: the process's user",
                "schema": {"type": ["string", "null"]},
            },
            "metastore_db_conn_id": {
                "label": "Database connection",
                "description": "Id of an ordinary Airflow connection to the metastore's own database (optional)",
                "schema": {"type": ["string", "null"]},
            },
        },
    }


def _options() -> dict[str, _Option]:
    return {
        "delta_num_threshold": _option("Deltas above which a partition is due for minor compaction.", "integer", "10"),
        "delta_pct_threshold": _option(
            "Share of the base's bytes that the deltas must exceed for major compaction.", "float", "0.1"
        ),
        "aborted_txn_threshold": _option("Aborted transactions that make a partition due.", "integer", "1000"),
        "aborted_txn_time_threshold": _option(
            "Age in seconds of an aborted transaction that makes a partition due; negative for never.",
            "integer",
            "43200",
        ),
        "check_interval": _option("Seconds between two evaluations of a sensor.", "float", "300"),
        "max_num_delta": _option("Deltas that one minor compaction merges at most.", "integer", "500"),
        "worker_timeout": _option("Seconds after which a silent claim is taken back.", "float", "86400"),
        "cleaner_retention_time": _option(
            "Seconds that obsolete directories are kept for readers that open no transaction.", "float", "0"
        ),
        "serve_foreign_requests": _option(
            "Whether requests by ALTER TABLE ... COMPACT or by Hive's Initiator are carried out.", "boolean", "False"
        ),
        "job_queue": _option("Queue of the cluster for the Spark applications.", "string", "", "compaction"),
    }
