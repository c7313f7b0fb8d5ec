"""Which tables and partitions this package compacts; every other is refused by name, with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from airflow_provider_acid.compaction.facts import EntityFacts, find_property
from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.metastore.values import DatabaseInfo, TableInfo

ORC_INPUT_FORMAT = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"


def table_refusal(table: TableInfo, database: DatabaseInfo) -> UnsupportedTableError | None:
    """Why no partition of this table is compacted; None where nothing speaks against it.

    The conditions are those of Hive's Initiator and Worker (sorted tables, replication) plus what this
    release does not do yet.
    """
    for applies, reason, remedy in _table_conditions(table, database):
        if applies:
            return UnsupportedTableError(f"table {table.database}.{table.name}", reason, remedy)
    return None


def _table_conditions(table: TableInfo, database: DatabaseInfo) -> Iterator[tuple[bool, str, str]]:
    yield table.is_external, "is an external table", "only managed ACID tables have deltas to compact"
    yield (
        not table.is_transactional,
        "is not an ACID table (property transactional is not true)",
        "name tables created with transactional=true",
    )
    yield (
        bool(find_property(database.parameters, "repl.source.for")),
        "its database is a replication source (repl.source.for); deleted files would have to go to the change manager",
        "leave this database to Hive's own compactor",
    )
    pending = find_property(table.parameters, "hive.repl.first.inc.pending") or find_property(
        database.parameters, "hive.repl.first.inc.pending"
    )
    yield (
        (pending or "").lower() == "true",
        "waits for its first incremental replication (hive.repl.first.inc.pending)",
        "compact it when the replication load has finished",
    )
    yield (
        table.is_insert_only,
        "is an insert-only table, a kind left to a later release",
        "use Hive's own compactor for it until then",
    )
    yield (
        table.input_format != ORC_INPUT_FORMAT,
        f"is stored as {table.input_format}, not ORC",
        "full ACID tables are stored as ORC; check the table's definition",
    )
    yield (
        bool(table.sort_columns),
        "is sorted (SORTED BY), and a merge by row id would break the order",
        "recreate the table without SORTED BY to have it compacted",
    )


def check_entity(facts: EntityFacts) -> None:
    """Refuse what cannot or must not be compacted.

    :raises UnsupportedTableError: naming the table or partition, the reason and the remedy.
    """
    refusal = table_refusal(facts.table, facts.database)
    if refusal is not None:
        raise refusal
    if (facts.property("no_cleanup") or "").lower() == "true":
        raise UnsupportedTableError(
            str(facts.entity),
            "has no_cleanup=true, so that the merged directories could never be deleted",
            "remove the property no_cleanup from table and partition",
        )
    if facts.partition is not None:
        _check_partition(facts)


def _check_partition(facts: EntityFacts) -> None:
    partition = facts.partition
    assert partition is not None
    if partition.sort_columns:
        raise UnsupportedTableError(
            str(facts.entity), "the partition is sorted (SORTED BY)", "leave it, or rewrite it without SORTED BY"
        )
    table, own = urlsplit(facts.table.location), urlsplit(partition.location)
    if (table.scheme, table.netloc) != (own.scheme, own.netloc) or ".." in own.path.split("/"):
        raise UnsupportedTableError(
            str(facts.entity),
            f"lies at {partition.location}, on another store than its table or by way of '..'",
            "move the partition below its table",
        )
