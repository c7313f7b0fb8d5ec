"""What Airflow asks a provider package about itself."""

from __future__ import annotations

from airflow_provider_acid.options import OPTIONS, SECTION


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
                    "airflow_provider_acid.operators.housekeeping",
                ],
            }
        ],
        "triggers": [{"integration-name": "Hive ACID", "python-modules": ["airflow_provider_acid.triggers.cleaner"]}],
        "asset-uris": [
            {
                "schemes": ["hive-acid"],
                "handler": "airflow_provider_acid.assets.table.sanitize_uri",
                "factory": "airflow_provider_acid.assets.table.acid_table",
                "to_openlineage_converter": "airflow_provider_acid.assets.table.to_openlineage",
            }
        ],
        "extra-links": [
            "airflow_provider_acid.links.compaction.SparkUiLink",
            "airflow_provider_acid.links.compaction.AcidPageLink",
        ],
        "integrations": [
            {
                "integration-name": "Hive ACID",
                "external-doc-url": "https://cwiki.apache.org/confluence/display/Hive/Hive+Transactions",
                "tags": ["apache"],
            }
        ],
        "config": {
            SECTION: {
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
                "description": "Id of an Airflow connection to the metastore's own database; needed with Hive 3.1",
                "schema": {"type": ["string", "null"]},
            },
            "housekeeping_elsewhere": {
                "label": "Housekeeping elsewhere",
                "description": "Another instance of this Hive 3.1 metastore has hive.compactor.initiator.on",
                "schema": {"type": ["boolean", "null"], "default": False},
            },
            "storage": {
                "label": "Storage",
                "description": 'How HDFS and S3 are reached: {"hdfs": {"web_addresses": ["namenode:9870"]}, "s3": {}}',
                "schema": {"type": ["string", "null"]},
            },
        },
    }


def _options() -> dict[str, dict[str, object]]:
    return {
        option.name: {
            "description": option.description,
            "version_added": "0.1.0",
            "type": option.type,
            "example": option.example,
            "default": option.default,
        }
        for option in OPTIONS
    }
