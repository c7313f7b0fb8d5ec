"""The tables of the demonstration, all in the database ``default``, where the DAG looks unless told otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.harness import generated_table
from tests.harness.generated_table import GeneratedTable
from tests.harness.hive_tables import register
from tests.harness.metastore_server import MetastoreServer

DATABASE = "default"

HIVE_WRITTEN = {
    "4.0.1": (
        *("acid_plain", "acid_buck", "acid_part", "acid_partbuck", "acid_multi", "acid_merge", "acid_abort"),
        *("acid_evol", "acid_types", "mm_plain"),
    ),
    "3.1.3": (
        *("a_plain", "a_buck", "a_part", "a_part_buck", "a_multi", "a_merge", "a_abort", "a_evol", "a_types"),
        "a_conv",
    ),
}
"""By version of Hive. ``mm_plain`` is insert-only, ``a_conv`` has files from before its conversion to ACID."""


@dataclass(frozen=True)
class DemoTable:
    """A table of the demonstration.

    :param writer: who wrote it.
    :param columns: name to Hive type, without partition keys.
    :param partitions: their names; empty where the table is unpartitioned.
    :param expected_rows: what Hive itself reads; None where Hive did not write the table.
    :param has_row_ids: False for insert-only tables.
    """

    name: str
    writer: str
    location: Path
    columns: Mapping[str, str]
    partition_keys: tuple[str, ...]
    partitions: tuple[str, ...]
    expected_rows: tuple[Mapping[str, object], ...] | None
    has_row_ids: bool = True

    @property
    def folders(self) -> dict[str | None, Path]:
        """The folder of each partition by name, or the table's own by None."""
        if not self.partition_keys:
            return {None: self.location}
        return {partition: self.location / partition for partition in self.partitions}

    def label(self, partition: str | None) -> str:
        """How people are told of a partition."""
        return self.name if partition is None else f"{self.name}/{partition}"


def register_hive_written(server: MetastoreServer) -> list[DemoTable]:
    """Brings the tables that Hive wrote into the metastore and replays their transactions."""
    tables = []
    for version, names in HIVE_WRITTEN.items():
        for name in names:
            made = register(server, name, version, DATABASE)
            definition = made.fixture.definition
            tables.append(
                DemoTable(
                    name,
                    f"Hive {version}",
                    made.location,
                    definition.columns,
                    tuple(definition.partition_keys),
                    made.partitions,
                    made.rows,
                    made.fixture.full_acid,
                )
            )
    return tables


def register_generated(server: MetastoreServer) -> DemoTable:
    """Makes the large table."""
    table = GeneratedTable(DATABASE, "orders")
    return DemoTable(
        table.name,
        "generated",
        generated_table.create(server, table),
        generated_table.COLUMNS,
        tuple(generated_table.PARTITION_KEYS),
        table.partitions,
        None,
    )
