"""Each kind of table or partition that is not compacted, with its reason and remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.eligibility import ORC_INPUT_FORMAT, check_entity, table_refusal
from airflow_provider_acid.compaction.facts import EntityFacts
from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.metastore.values import ColumnInfo, DatabaseInfo, PartitionInfo, TableInfo

DATABASE = DatabaseInfo("db", {}, "file:/w/db.db")
TABLE = TableInfo(
    database="db",
    name="t",
    location="file:/w/db.db/t",
    columns=(ColumnInfo("V", "BIGINT"),),
    partition_keys=(ColumnInfo("p", "string"),),
    parameters={"transactional": "true", "transactional_properties": "default"},
    bucket_count=-1,
    bucket_columns=(),
    sort_columns=(),
    table_type="MANAGED_TABLE",
    input_format=ORC_INPUT_FORMAT,
    output_format="",
    owner="hive",
)
PARTITION = PartitionInfo("p=1", ("1",), "file:/w/db.db/t/p=1", {}, (), -1, ())


def facts(
    table: TableInfo = TABLE, database: DatabaseInfo = DATABASE, partition: PartitionInfo = PARTITION
) -> EntityFacts:
    return EntityFacts(Entity("db", "t", "p=1"), database, table, partition)


def with_property(name: str, value: str) -> TableInfo:
    return replace(TABLE, parameters={**TABLE.parameters, name: value})


@pytest.mark.parametrize(
    ("table", "database", "reason"),
    [
        (replace(TABLE, table_type="EXTERNAL_TABLE"), DATABASE, "is an external table"),
        (with_property("EXTERNAL", "TRUE"), DATABASE, "is an external table"),
        (replace(TABLE, parameters={}), DATABASE, "is not an ACID table"),
        (with_property("transactional", "false"), DATABASE, "is not an ACID table"),
        (with_property("transactional_properties", "insert_only"), DATABASE, "is an insert-only table"),
        (replace(TABLE, input_format="TextInputFormat"), DATABASE, "is stored as TextInputFormat, not ORC"),
        (replace(TABLE, sort_columns=("v",)), DATABASE, "is sorted (SORTED BY)"),
        (TABLE, replace(DATABASE, parameters={"repl.source.for": "1"}), "its database is a replication source"),
        (TABLE, replace(DATABASE, parameters={"REPL.source.FOR": "1"}), "its database is a replication source"),
        (with_property("hive.repl.first.inc.pending", "TRUE"), DATABASE, "waits for its first incremental"),
        (TABLE, replace(DATABASE, parameters={"hive.repl.first.inc.pending": "true"}), "waits for its first"),
    ],
)
def test_a_table_that_is_not_compacted_is_refused_by_name(
    table: TableInfo, database: DatabaseInfo, reason: str
) -> None:
    refusal = table_refusal(table, database)
    assert refusal is not None
    assert str(refusal).startswith(f"table db.t: {reason}") or f": {reason}" in str(refusal)
    assert "Remedy: " in str(refusal)
    with pytest.raises(UnsupportedTableError) as raised:
        check_entity(facts(table, database))
    assert str(raised.value) == str(refusal)


@pytest.mark.parametrize(
    ("table", "partition", "reason"),
    [
        (with_property("no_cleanup", "true"), PARTITION, "no_cleanup"),
        (with_property("NO_CLEANUP", "TRUE"), PARTITION, "no_cleanup"),
        (TABLE, replace(PARTITION, parameters={"NO_CLEANUP": "True"}), "no_cleanup"),
        (TABLE, replace(PARTITION, sort_columns=("v",)), "the partition is sorted"),
        (TABLE, replace(PARTITION, location="hdfs://nn/w/p=1"), "on another store than its table"),
        (TABLE, replace(PARTITION, location="file:/w/db.db/t/../other"), "by way of '..'"),
    ],
)
def test_a_partition_that_is_not_compacted_is_refused_by_name(
    table: TableInfo, partition: PartitionInfo, reason: str
) -> None:
    assert table_refusal(table, DATABASE) is None
    with pytest.raises(UnsupportedTableError, match=r"^db\.t/p=1: .*Remedy: ") as raised:
        check_entity(facts(table, partition=partition))
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        with_property("hive.repl.first.inc.pending", "false"),
        with_property("no_cleanup", "false"),
        with_property("repl.source.for", "only the database's counts"),
        replace(TABLE, bucket_count=4),
    ],
)
def test_everything_else_is_compacted(table: TableInfo) -> None:
    assert table_refusal(table, DATABASE) is None
    check_entity(facts(table))


def test_a_partitions_own_property_goes_before_its_tables() -> None:
    found = facts(with_property("no_cleanup", "true"), partition=replace(PARTITION, parameters={"no_cleanup": "false"}))
    assert found.property("no_cleanup") == "false"
    check_entity(found)


def test_facts_speak_of_the_partition_where_there_is_one() -> None:
    assert facts().location == PARTITION.location
    assert EntityFacts(Entity("db", "t"), DATABASE, TABLE, None).location == TABLE.location
    assert [(column.name, column.type) for column in facts().columns] == [("V", "bigint")]
    assert not facts().bucketed
    assert facts(replace(TABLE, bucket_count=4)).bucketed
