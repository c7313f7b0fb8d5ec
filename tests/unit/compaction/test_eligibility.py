"""Each kind of table or partition that is not compacted, with its reason and remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.eligibility import ORC_INPUT_FORMAT, check_entity, file_format, table_refusal
from airflow_provider_acid.compaction.facts import EntityFacts
from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.metastore.values import ColumnInfo, DatabaseInfo, PartitionInfo, SerdeInfo, TableInfo
from airflow_provider_acid.plan.plan import FileFormat
from tests.unit.compaction.managed_tables import managed_table

DATABASE = DatabaseInfo("db", {}, "file:/w/db.db")
TABLE = managed_table(
    "db",
    "t",
    "file:/w/db.db/t",
    {"transactional": "true", "transactional_properties": "default"},
    column=ColumnInfo("V", "BIGINT"),
)
PARTITION = PartitionInfo("p=1", ("1",), "file:/w/db.db/t/p=1", {}, ())
HIVE = "org.apache.hadoop.hive."
PARQUET = HIVE + "ql.io.parquet.MapredParquetInputFormat"
TEXT = "org.apache.hadoop.mapred.TextInputFormat"
LINES = SerdeInfo(HIVE + "serde2.lazy.LazySimpleSerDe")


def facts(
    table: TableInfo = TABLE, database: DatabaseInfo = DATABASE, partition: PartitionInfo = PARTITION
) -> EntityFacts:
    return EntityFacts(Entity("db", "t", "p=1"), database, table, partition)


def with_column(type: str, table: TableInfo = TABLE) -> TableInfo:
    return replace(table, columns=(*table.columns, ColumnInfo("w", type)))


def with_property(name: str, value: str, table: TableInfo = TABLE) -> TableInfo:
    return replace(table, parameters={**table.parameters, name: value})


def insert_only(input_format: str, serde: SerdeInfo = LINES) -> TableInfo:
    table = with_property("transactional_properties", "insert_only")
    return replace(table, input_format=input_format, serde=serde)


@pytest.mark.parametrize(
    ("table", "database", "reason"),
    [
        (replace(TABLE, table_type="EXTERNAL_TABLE"), DATABASE, "is an external table"),
        (with_property("EXTERNAL", "TRUE"), DATABASE, "is an external table"),
        (replace(TABLE, parameters={}), DATABASE, "is not an ACID table"),
        (with_property("transactional", "false"), DATABASE, "is not an ACID table"),
        (insert_only(TEXT, SerdeInfo("com.example.JsonSerDe")), DATABASE, "is an insert-only table stored as JSON"),
        (
            insert_only("org.apache.iceberg.mr.hive.HiveIcebergInputFormat"),
            DATABASE,
            "is an insert-only table stored as Iceberg",
        ),
        (
            insert_only(TEXT, SerdeInfo("com.example.Own")),
            DATABASE,
            "is an insert-only table stored as another format (org.apache.hadoop.mapred.T",
        ),
        (insert_only("com.example.Own"), DATABASE, "is an insert-only table stored as another format (com.example.Own"),
        (replace(insert_only(TEXT), stored_as_directories=True), DATABASE, "is skewed and stored as directories"),
        (replace(insert_only(TEXT), sort_columns=("v",)), DATABASE, "is sorted (SORTED BY)"),
        (replace(TABLE, input_format="TextInputFormat"), DATABASE, "is stored as TextInputFormat, not ORC"),
        (replace(TABLE, sort_columns=("v",)), DATABASE, "is sorted (SORTED BY)"),
        *(
            (with_column(type), DATABASE, f"has the column w: the type {type} is not supported")
            for type in (
                "timestamp with local time zone",
                "uniontype<int,string>",
                "array<struct<a:uniontype<int,string>>>",
                "geometry",
            )
        ),
        (TABLE, replace(DATABASE, parameters={"repl.source.for": "1"}), "its database is a replication source"),
        (TABLE, replace(DATABASE, parameters={"REPL.source.FOR": "1"}), "its database is a replication source"),
        (
            with_property("skip.header.line.count", "1"),
            DATABASE,
            "has skip.header.line.count or skip.footer.line.count",
        ),
        (
            with_property("Skip.Footer.Line.Count", "2"),
            DATABASE,
            "has skip.header.line.count or skip.footer.line.count",
        ),
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


@pytest.mark.parametrize("type", ["uniontype<int,string>", "timestamp with local time zone", "geometry"])
def test_files_of_insert_only_tables_are_taken_whatever_their_columns_are(type: str) -> None:
    assert table_refusal(with_column(type, insert_only(PARQUET)), DATABASE) is None


@pytest.mark.parametrize(
    ("table", "partition", "reason"),
    [
        (with_property("no_cleanup", "true"), PARTITION, "no_cleanup"),
        (with_property("NO_CLEANUP", "TRUE"), PARTITION, "no_cleanup"),
        (TABLE, replace(PARTITION, parameters={"NO_CLEANUP": "True"}), "no_cleanup"),
        (TABLE, replace(PARTITION, sort_columns=("v",)), "the partition is sorted"),
        (TABLE, replace(PARTITION, input_format=TEXT), f"is stored as {TEXT}, not ORC"),
        (insert_only(TEXT), replace(PARTITION, input_format="com.example.Own"), "stored as another format"),
        (insert_only(TEXT), replace(PARTITION, serde=SerdeInfo("com.example.JsonSerDe")), "stored as JSON"),
        (insert_only(TEXT), replace(PARTITION, stored_as_directories=True), "is skewed and stored as directories"),
        (TABLE, replace(PARTITION, location="hdfs://nn/w/p=1"), "on another store than its table"),
        (TABLE, replace(PARTITION, location="file:/w/db.db/t/../other"), "by way of '..'"),
    ],
)
def test_a_partition_that_is_not_compacted_is_refused_by_name(
    table: TableInfo, partition: PartitionInfo, reason: str
) -> None:
    assert table_refusal(table, DATABASE) is None
    with pytest.raises(UnsupportedTableError, match=r"^(db\.t/p=1|partition p=1 of table db\.t): .*Remedy: ") as raised:
        check_entity(facts(table, partition=partition))
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        with_property("hive.repl.first.inc.pending", "false"),
        with_property("no_cleanup", "false"),
        with_property("skip.header.line.count", "0"),
        with_property("repl.source.for", "only the database's counts"),
        replace(TABLE, bucket_count=4),
        insert_only(ORC_INPUT_FORMAT),
        insert_only(PARQUET),
        insert_only(TEXT),
        replace(TABLE, stored_as_directories=True),
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


@pytest.mark.parametrize(
    ("table", "partition", "expected"),
    [
        (TABLE, None, FileFormat.ACID_ORC),
        (TABLE, PARTITION, FileFormat.ACID_ORC),
        (insert_only(ORC_INPUT_FORMAT), None, FileFormat.ORC),
        (insert_only(PARQUET), None, FileFormat.PARQUET),
        (insert_only(TEXT), None, FileFormat.TEXT),
        (insert_only(TEXT, SerdeInfo(HIVE + "serde2.OpenCSVSerde")), None, FileFormat.TEXT),
        (insert_only(TEXT), replace(PARTITION, input_format=PARQUET), FileFormat.PARQUET),
        (insert_only(PARQUET), replace(PARTITION, input_format=TEXT, serde=LINES), FileFormat.TEXT),
        (insert_only(ORC_INPUT_FORMAT), replace(PARTITION, input_format=ORC_INPUT_FORMAT), FileFormat.ORC),
    ],
)
def test_a_partition_is_judged_by_its_own_format(
    table: TableInfo, partition: PartitionInfo | None, expected: FileFormat
) -> None:
    assert file_format(table, partition) is expected


@pytest.mark.parametrize(("value", "expected"), [("1", FileFormat.APART), ("0", FileFormat.ORC)])
def test_orc_files_of_which_hive_skips_rows_stay_apart(value: str, expected: FileFormat) -> None:
    table = insert_only(ORC_INPUT_FORMAT)
    assert file_format(with_property("skip.header.line.count", value, table), None) is expected


@pytest.mark.parametrize(
    ("name", "value", "apart"),
    [
        ("skip.header.line.count", "1", True),
        ("Skip.Header.Line.Count", "2", True),
        ("skip.header.line.count", "0", False),
        ("skip.footer.line.count", "1", True),
        ("line.delim", "\n", False),
        ("line.delim", "10", False),
        ("line.delim", "|", True),
        ("textinputformat.record.delimiter", "\n", True),
        ("serialization.encoding", "UTF-8", False),
        ("serialization.encoding", "ISO-8859-15", False),
        ("serialization.encoding", "windows-1252", False),
        ("serialization.encoding", "UTF-16", True),
        ("serialization.encoding", "utf-16le", True),
        ("serialization.encoding", "GBK", True),
        ("field.delim", ",", False),
        ("escape.delim", "\\", False),
    ],
)
def test_text_is_put_together_only_where_lines_mean_the_same_in_any_file(name: str, value: str, apart: bool) -> None:
    expected = FileFormat.APART if apart else FileFormat.TEXT
    of_serde = SerdeInfo(LINES.library, {name: value})
    assert file_format(with_property(name, value, insert_only(TEXT)), None) is expected
    assert file_format(insert_only(TEXT, of_serde), None) is expected
    assert file_format(insert_only(TEXT), replace(PARTITION, parameters={name: value})) is expected
    assert file_format(insert_only(TEXT), replace(PARTITION, serde=of_serde)) is expected
    # A property of the table stays a danger, whatever the partition says.
    contradicted = replace(PARTITION, parameters={name: "0"}) if name.lower().startswith("skip") else PARTITION
    assert file_format(with_property(name, value, insert_only(TEXT)), contradicted) is expected
