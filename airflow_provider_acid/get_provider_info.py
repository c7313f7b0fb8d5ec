"""What Airflow asks a provider package about itself."""

from __future__ import annotations

from airflow_provider_acid.hooks.connection_form import (
    CONNECTION_TYPE,
    FIELDS,
    HIDDEN_FIELDS,
    PLACEHOLDERS,
    RELABELING,
)
from airflow_provider_acid.option import SECTION, Place
from airflow_provider_acid.options import OPTIONS


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
                    "airflow_provider_acid.operators.doctor",
                    "airflow_provider_acid.operators.housekeeping",
                    "airflow_provider_acid.operators.table_plan",
                    "airflow_provider_acid.operators.undo",
                ],
            }
        ],
        "triggers": [
            {
                "integration-name": "Hive ACID",
                "python-modules": [
                    "airflow_provider_acid.triggers.cleaner",
                    "airflow_provider_acid.triggers.compaction",
                ],
            }
        ],
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
        "connection-type": CONNECTION_TYPE,
        "hook-name": "Hive ACID metastore",
        "hook-class-name": "airflow_provider_acid.hooks.metastore.AcidMetastoreHook",
        "ui-field-behaviour": {
            "hidden-fields": list(HIDDEN_FIELDS),
            "relabeling": dict(RELABELING),
            "placeholders": dict(PLACEHOLDERS),
        },
        "conn-fields": dict(FIELDS),
    }


def _options() -> dict[str, dict[str, object]]:
    return {
        option.name: {
            "description": option.description,
            "version_added": option.since,
            "type": option.kind.airflow_type,
            "example": option.example,
            "default": option.default_text,
        }
        for option in OPTIONS.values()
        if Place.CONFIG in option.places
    }
