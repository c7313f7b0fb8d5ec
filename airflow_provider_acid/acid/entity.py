"""The unit of compaction: an unpartitioned table or one partition of a table."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.json_fields import JsonObject


@dataclass(frozen=True, order=True)
class Entity:
    """A table, or a partition of one; what a row of Hive's compaction queue is about.

    :param database: database name, lower case as the metastore keeps it.
    :param table: table name, lower case.
    :param partition: partition name as the metastore spells it (``ds=2024-01-01/h=0``, values escaped,
        case of values kept), or None for an unpartitioned table.
    """

    database: str
    table: str
    partition: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "database", self.database.lower())
        object.__setattr__(self, "table", self.table.lower())

    @classmethod
    def from_json(cls, data: JsonObject) -> Entity:
        """The entity whose three names are fields of ``data``; ``partition`` may be missing.

        :raises ConfigurationError: a name is missing or no text.
        """
        return cls(fields.text(data, "database"), fields.text(data, "table"), fields.optional_text(data, "partition"))

    @property
    def full_table_name(self) -> str:
        """``database.table``, the form in which the metastore keys write ids."""
        return f"{self.database}.{self.table}"

    def __str__(self) -> str:
        return f"{self.full_table_name}/{self.partition}" if self.partition else self.full_table_name
