"""Kinds of tables by what their files hold: every type, every codec, and files of insert-only tables."""

from __future__ import annotations

from dataclasses import replace

from tests.harness.hive_engine_program import HIVE_3, HIVE_4, HIVE_4_2
from tests.harness.the_hive_4 import THE_HIVE_4
from tests.judge.statements import Aborted
from tests.judge.table_kind import BOTH, ID_AND_TEXT, TableKind, changes, rows, table

TYPES = (
    "i1 tinyint, i2 smallint, i4 int, i8 bigint, f4 float, f8 double, d4 decimal(20,4), d18 decimal(38,18), "
    "st string, vc varchar(10), ch char(5), bo boolean, da date, ts timestamp, bi binary, ar array<int>, "
    "ma map<string,int>, sr struct<x:int,y:string,z:array<string>>, nested array<struct<v:varchar(4),c:char(3)>>"
)
NESTED = "array(named_struct('v', cast('{v}' as varchar(4)), 'c', cast('{c}' as char(3))))"
# A job prints array(null) as NULL, as it comes through text: the elements are read one by one.
READ_TYPES = "i1, i2, i4, i8, f4, f8, d4, d18, st, vc, ch, bo, da, ts, hex(bi), size(ar), ar[0], ar[1], ma, sr, nested"
ALL_TYPES = (
    TableKind(
        "types",
        table(
            f"({TYPES})",
            "insert into {t} select cast(-128 as tinyint), cast(32767 as smallint), 1, 9223372036854775807, "
            "cast(1.5 as float), -2.25e300, cast('1234567890123456.7891' as decimal(20,4)), "
            "cast('12345678901234567890.123456789012345678' as decimal(38,18)), 'h\u00e9llo w\u00f6rld', "
            "cast('varcharvalue' as varchar(10)), cast('abc' as char(5)), true, date '1969-12-31', "
            "timestamp '1960-02-03 04:05:06.123456789', cast('bin' as binary), array(1, 2, 3), "
            "map('k1', 1, 'k2', 2), named_struct('x', 1, 'y', 'why', 'z', array('p', 'q')), "
            + NESTED.format(v="abcd", c="ab"),
            "insert into {t} select cast(1 as tinyint), cast(null as smallint), 2, 4, cast(0.1 as float), 0.1, "
            "cast('-0.0001' as decimal(20,4)), cast('-0.000000000000000001' as decimal(38,18)), '', "
            "cast('' as varchar(10)), cast('xyz' as char(5)), false, date '2024-02-29', "
            "timestamp '2024-02-29 23:59:59.999', unhex('00FF10'), array(cast(null as int)), map('', 0), "
            "named_struct('x', cast(null as int), 'y', cast(null as string), 'z', array('only')), "
            + NESTED.format(v="", c=""),
            "insert into {t} (i4, da, ts) values (3, date '0001-01-01', timestamp '0001-01-01 00:00:00')",
            "insert into {t} (i4, da, ts) values (4, date '9999-12-31', timestamp '9999-12-31 23:59:59.999999999')",
            "insert into {t} (i4, da, ts) values (5, date '1582-10-15', timestamp '1969-12-31 23:59:59.5')",
            "insert into {t} (i4) values (6), (7)",
            "update {t} set st = 'updated' where i4 in (2, 6)",
            "delete from {t} where i4 = 7",
        ),
        (
            "insert into {t} (i4, ts) values (8, timestamp '1901-01-01 00:00:00.000000001')",
            "update {t} set st = 'again' where i4 in (1, 8)",
            "delete from {t} where i4 = 6",
        ),
        columns=READ_TYPES,
        # Hive 4.2 takes a nested literal's varchar and char for strings, and refuses the first statement.
        versions=(HIVE_3, HIVE_4),
    ),
)


def compressed(codec: str, *versions: str) -> TableKind:
    """A table written with a codec."""
    stored = f"stored as orc tblproperties('transactional'='true', 'orc.compress'='{codec}')"
    return TableKind(
        f"compressed_{codec.lower()}",
        table(
            ID_AND_TEXT,
            f"insert into {{t}} values {rows(1, 4)}, (5, repeat('long ', 2000))",
            f"insert into {{t}} values {rows(6, 7)}",
            "delete from {t} where id = 3",
            stored=stored,
        ),
        changes(),
        versions=versions or BOTH,
    )


COMPRESSED = (
    compressed("NONE"),
    compressed("ZLIB"),
    compressed("SNAPPY"),
    compressed("LZ4", HIVE_4_2),
    compressed("ZSTD", HIVE_4_2),
)


def many(first: int, count: int) -> str:
    """So many rows whose text does not compress, in one INSERT."""
    numbers = f"(select posexplode(split(space({count - 1}), ' ')) as (n, x)) numbers"
    return f"insert into {{t}} select {first} + n, sha2(cast({first} + n as string), 256) from {numbers}"


MANY_STRIPES = (
    TableKind(
        "many_stripes",
        table(
            ID_AND_TEXT,
            many(1, 20000),
            many(20001, 10000),
            "update {t} set s = 'u' where id % 1000 = 1",
            "delete from {t} where id % 500 = 3 or id between 14000 and 14990",
            stored="stored as orc tblproperties('transactional'='true', 'orc.stripe.size'='100000', "
            "'orc.row.index.stride'='1000')",
        ),
        (
            many(50001, 10000),
            "update {t} set s = concat(s, '^') where id % 777 = 0",
            "delete from {t} where id % 500 = 7 or id between 4000 and 4990",
        ),
        # Each split takes the bounds of the deletes that it reads from the key index of its stripes.
        settings=(
            ("mapreduce.input.fileinputformat.split.maxsize", "200000", "256000000"),
            ("mapreduce.input.fileinputformat.split.minsize", "1", "1"),
            ("hive.exec.orc.split.strategy", "ETL", "HYBRID"),
            ("tez.grouping.min-size", "1", "52428800"),
            ("tez.grouping.max-size", "200000", "1073741824"),
        ),
    ),
)


def insert_only(name: str, definition: str, storage: str, partition: str = "") -> TableKind:
    """An insert-only table with an aborted write in its middle.

    That write names its partition: of one that does not, Hive 3 forgets that it aborted (test_aborts_of_hive_3).
    """
    into = "insert into {t} " + ("partition(p) " if partition else "")
    into_one = "insert into {t} " + (f"partition(p = {partition}) " if partition else "")
    more = (partition,) if partition else ()
    stored = f"stored as {storage} tblproperties('transactional'='true', 'transactional_properties'='insert_only')"
    return TableKind(
        f"insert_only_{name}",
        table(
            definition,
            f"{into}values {rows(1, 3, *more)}",
            Aborted(f"{into_one}values {rows(31, 33)}"),
            f"{into}values {rows(4, 5, *more)}",
            stored=stored,
        ),
        (f"{into}values {rows(6, 8, *more)}", f"{into}values {rows(9, 9, *more)}"),
        full_acid=False,
        proves="M-08 M-09 M-12 M-14",
    )


INSERT_ONLY = (
    insert_only("orc", ID_AND_TEXT, "orc"),
    insert_only("parquet", ID_AND_TEXT, "parquet"),
    insert_only("text", ID_AND_TEXT, "textfile"),
    insert_only("orc_buckets", f"{ID_AND_TEXT} clustered by (id) into 2 buckets", "orc"),
    insert_only("text_buckets", f"{ID_AND_TEXT} clustered by (id) into 2 buckets", "textfile"),
    # The harness's Hive 3.1.3 lacks the Avro that its SerDe was made for, and knows no JSONFILE.
    replace(insert_only("avro", ID_AND_TEXT, "avro"), versions=(THE_HIVE_4,)),
    insert_only("rcfile", f"{ID_AND_TEXT} clustered by (id) into 2 buckets", "rcfile"),
    insert_only("sequencefile", ID_AND_TEXT, "sequencefile"),
    replace(insert_only("json", ID_AND_TEXT, "jsonfile"), versions=(THE_HIVE_4,)),
    insert_only("parquet_partitions", f"{ID_AND_TEXT} partitioned by (p string)", "parquet", "'x'"),
)
