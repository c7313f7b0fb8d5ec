"""The kinds of tables, each with the SQL that makes it and the SQL that goes on top of it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.harness.hive_engine_program import HIVE_3, HIVE_4
from tests.judge.statements import Aborted, Statement, With, WriterDied, streamed

BOTH = (HIVE_3, HIVE_4)
ID_AND_TEXT = "(id int, s string)"
ACID = "stored as orc tblproperties('transactional'='true')"
PLAIN_FILES = "stored as orc tblproperties('transactional'='false')"
CONVERT = "alter table {t} set tblproperties('transactional'='true')"


@dataclass(frozen=True)
class TableKind:
    """One kind of table.

    :param name: of the kind, and of the table.
    :param write: what makes the table.
    :param on_top: what is done to it after its first compaction.
    :param columns: what is read beside the row id.
    :param full_acid: whether its rows have ids.
    :param versions: Hive versions that know the kind.
    """

    name: str
    write: tuple[Statement, ...]
    on_top: tuple[Statement, ...]
    columns: str = "*"
    full_acid: bool = True
    versions: tuple[str, ...] = BOTH

    @property
    def read(self) -> str:
        """The select list."""
        return f"row__id, {self.columns}" if self.full_acid else self.columns


def changes(partition: str = "") -> tuple[Statement, ...]:
    """INSERT, UPDATE, DELETE and MERGE on a table of ``id int, s string`` and at most one partition column.

    :param partition: a literal of that column.
    """
    last = f", {partition}" if partition else ""
    into = "insert into {t} " + ("partition(p) " if partition else "")
    return (
        f"{into}values (101, 'top'{last}), (102, 'gone'{last}), (103, 'kept'{last})",
        "update {t} set s = concat(s, '^') where id in (1, 3, 101)",
        "delete from {t} where id in (2, 102)",
        "merge into {t} t using (select 4 as id union all select 104 as id union all select 5 as id) x on t.id = x.id "
        "when matched and x.id = 5 then delete when matched then update set s = 'merged' "
        f"when not matched then insert values (x.id, 'new'{last})",
    )


def rows(first: int, last: int, *more: str) -> str:
    """``(1, 'a1'), (2, 'a2')`` …, each with further literals."""
    return ", ".join("({})".format(", ".join((str(n), f"'a{n}'", *more))) for n in range(first, last + 1))


def table(definition: str, *writes: Statement, stored: str = ACID) -> tuple[Statement, ...]:
    """CREATE TABLE and what is written into it."""
    return (f"create table {{t}} {definition} {stored}", *writes)


PLAIN = TableKind(
    "plain",
    table(
        ID_AND_TEXT,
        f"insert into {{t}} values {rows(1, 5)}, (6, null)",
        f"insert into {{t}} values {rows(7, 9)}",
        "update {t} set s = 'u' where id in (2, 7)",
        "delete from {t} where id in (3, 7)",
    ),
    changes(),
)

BUCKETED = (
    TableKind(
        "buckets_2",
        table(
            f"{ID_AND_TEXT} clustered by (id) into 2 buckets",
            f"insert into {{t}} values {rows(1, 6)}",
            "update {t} set s = 'u' where id in (2, 3)",
            "delete from {t} where id = 6",
        ),
        changes(),
    ),
    TableKind(
        "buckets_5",
        table(
            f"{ID_AND_TEXT} clustered by (id) into 5 buckets",
            f"insert into {{t}} values {rows(1, 3)}",
            f"insert into {{t}} values {rows(4, 12)}",
            "delete from {t} where id in (6, 11)",
        ),
        changes(),
    ),
    TableKind(
        "partitions_of_buckets",
        table(
            f"{ID_AND_TEXT} partitioned by (p int) clustered by (id) into 2 buckets",
            "insert into {t} partition(p) values (1, 'a', 1), (2, 'b', 1), (3, 'c', 2), (4, 'd', 2), (5, 'e', 1)",
            "update {t} set s = 'u' where id in (2, 3)",
            "delete from {t} where id = 5",
        ),
        changes("2"),
    ),
)

SPECIAL_VALUES = ("a b", "c/d=e", "50%", "Upper", "\u00fc\u4e2d")

PARTITIONED = (
    TableKind(
        "special_partitions",
        table(
            f"{ID_AND_TEXT} partitioned by (p string)",
            "insert into {t} partition(p) values "
            + ", ".join(f"({n}, 'a{n}', '{value}')" for n, value in enumerate(SPECIAL_VALUES, start=1)),
            f"insert into {{t}} partition(p) values (6, 'more', '{SPECIAL_VALUES[1]}')",
            f"insert into {{t}} partition(p) values (7, 'more', '{SPECIAL_VALUES[4]}')",
            "update {t} set s = 'u' where id in (1, 3)",
            "delete from {t} where id = 2",
        ),
        changes(f"'{SPECIAL_VALUES[4]}'"),
    ),
)

STATEMENTS = (
    TableKind(
        "multi_insert",
        table(
            f"{ID_AND_TEXT} partitioned by (p int)",
            "from (select stack(3, 1, 'a', 2, 'b', 3, 'c') as (id, s)) x "
            "insert into {t} partition(p = 1) select id, s where id < 3 "
            "insert into {t} partition(p = 2) select id, s where id > 1",
            "delete from {t} where id = 2 and p = 1",
            "insert into {t} partition(p = 2) values (4, 'd'), (5, 'e')",
        ),
        changes("2"),
    ),
    TableKind(
        "merged",
        table(
            ID_AND_TEXT,
            f"insert into {{t}} values {rows(1, 6)}",
            "merge into {t} t using (select 1 as id union all select 2 as id union all select 9 as id) x "
            "on t.id = x.id when matched and x.id = 2 then delete when matched then update set s = 'merged' "
            "when not matched then insert values (x.id, 'new')",
        ),
        changes(),
    ),
)

STAGE = "insert overwrite local directory '{warehouse}/{table}_files' stored as orc select {rows}"


def staged(*found: tuple[int, str]) -> Statement:
    """ORC files without ACID columns, in a folder beside the table: ``000000_0``."""
    arguments = ", ".join(f"{number}, '{text}'" for number, text in found)
    return STAGE.replace("{rows}", f"stack({len(found)}, {arguments}) as (id, s)")


def load(how: str = "into") -> Statement:
    """LOAD DATA of what was staged."""
    return f"load data local inpath '{{warehouse}}/{{table}}_files/000000_0' {how} table {{t}}"


LOADED = (
    TableKind(
        "load_data",
        table(
            ID_AND_TEXT,
            staged((1, "l1"), (2, "l2"), (3, "l3")),
            load(),
            f"insert into {{t}} values {rows(4, 6)}",
            staged((7, "l7"), (8, "l8")),
            load(),
            "update {t} set s = 'u' where id in (1, 4, 8)",
            "delete from {t} where id in (2, 7)",
        ),
        changes(),
    ),
    TableKind(
        "load_data_overwrite",
        table(
            ID_AND_TEXT,
            f"insert into {{t}} values {rows(21, 22)}",
            staged((1, "l1"), (2, "l2"), (3, "l3")),
            load("overwrite into"),
            "delete from {t} where id = 3",
        ),
        changes(),
    ),
    TableKind(
        "load_data_only",
        table(ID_AND_TEXT, staged((1, "l1"), (2, "l2"), (3, "l3")), load(), staged((4, "l4"), (5, "l5")), load()),
        changes(),
    ),
    TableKind(
        "insert_overwrite",
        table(
            ID_AND_TEXT,
            f"insert into {{t}} values {rows(21, 22)}",
            "insert overwrite table {t} select stack(4, 1, 'o1', 2, 'o2', 3, 'o3', 4, 'o4')",
            "delete from {t} where id = 3",
            f"insert into {{t}} values {rows(5, 6)}",
        ),
        changes(),
    ),
)

SUBDIRECTORIES = (
    ("hive.optimize.union.remove", "true", "false"),
    ("hive.mapred.supports.subdirectories", "true", "false"),
    ("mapreduce.input.fileinputformat.input.dir.recursive", "true", "false"),
    ("hive.merge.mapfiles", "false", "true"),
)

CONVERTED = (
    TableKind(
        "converted",
        table(
            ID_AND_TEXT,
            f"insert into {{t}} values {rows(1, 3)}",
            f"insert into {{t}} values {rows(4, 5)}",
            CONVERT,
            f"insert into {{t}} values {rows(6, 7)}",
            "update {t} set s = 'u' where id in (1, 4, 6)",
            "delete from {t} where id in (3, 5)",
            stored=PLAIN_FILES,
        ),
        changes(),
        versions=(HIVE_3,),
    ),
    TableKind(
        "converted_copies",
        table(
            ID_AND_TEXT,
            *(part for n in range(1, 13) for part in (staged((n, f"o{n}"), (n + 20, f"p{n}")), load())),
            CONVERT,
            "delete from {t} where id in (22, 10, 11)",
            "update {t} set s = 'u' where id in (9, 32)",
            stored=PLAIN_FILES,
        ),
        changes(),
        versions=(HIVE_3,),
    ),
    TableKind(
        "converted_buckets",
        table(
            f"{ID_AND_TEXT} clustered by (id) into 2 buckets",
            f"insert into {{t}} values {rows(1, 6)}",
            CONVERT,
            "delete from {t} where id in (2, 5)",
            stored=PLAIN_FILES,
        ),
        changes(),
        versions=(HIVE_3,),
    ),
    TableKind(
        "converted_directories",
        table(
            ID_AND_TEXT,
            With(
                SUBDIRECTORIES,
                "insert into {t} select * from (select id, max(s) as s from "
                "(select stack(3, 1, 'a', 2, 'b', 3, 'c') as (id, s)) x group by id union all "
                "select id, max(s) as s from (select stack(2, 4, 'd', 5, 'e') as (id, s)) y group by id) u",
            ),
            CONVERT,
            f"insert into {{t}} values {rows(6, 7)}",
            "update {t} set s = 'u' where id in (2, 5)",
            "delete from {t} where id = 1",
            stored=PLAIN_FILES,
        ),
        changes(),
        versions=(HIVE_3,),
    ),
)

ABORTED = (
    TableKind(
        "aborted",
        table(
            ID_AND_TEXT,
            f"insert into {{t}} values {rows(1, 3)}",
            Aborted(f"insert into {{t}} values {rows(31, 32)}"),
            f"insert into {{t}} values {rows(4, 5)}",
            Aborted("delete from {t} where id = 1"),
            Aborted("update {t} set s = 'never' where id in (2, 4)"),
            "delete from {t} where id = 3",
        ),
        changes(),
    ),
    TableKind(
        "streamed",
        table(
            ID_AND_TEXT,
            streamed("open", "{db}", "{table}", "4"),
            streamed("commit", "1,a", "2,b"),
            streamed("abort", "100,aborted"),
            streamed("commit", "3,c"),
            streamed("close"),
            "update {t} set s = 'u' where id = 1",
            f"insert into {{t}} values {rows(4, 5)}",
        ),
        changes(),
        versions=(HIVE_3,),
    ),
    TableKind(
        "streamed_by_a_dead_writer",
        table(
            ID_AND_TEXT,
            streamed("open", "{db}", "{table}", "5"),
            streamed("commit", "1,a", "2,b"),
            streamed("abort", "100,aborted"),
            streamed("commit", "3,c"),
            streamed("begin", "200,never"),
            WriterDied(),
            "update {t} set s = 'u' where id = 1",
            f"insert into {{t}} values {rows(4, 5)}",
        ),
        changes(),
        versions=(HIVE_3,),
    ),
)

DELETED = (
    TableKind(
        "all_deleted",
        table(ID_AND_TEXT, f"insert into {{t}} values {rows(1, 3)}", "delete from {t} where id > 0"),
        (f"insert into {{t}} values {rows(1, 5)}", *changes()),
    ),
    TableKind(
        "all_deleted_of_a_bucket",
        table(
            f"{ID_AND_TEXT} clustered by (id) into 2 buckets",
            f"insert into {{t}} values {rows(1, 6)}",
            "delete from {t} where id in (select id from {t} where pmod(hash(id), 2) = 0)",
        ),
        (*changes(), "delete from {t} where id % 2 = 1"),
    ),
    TableKind(
        "two_writers",
        table(
            ID_AND_TEXT,
            With(
                (("mapreduce.job.reduces", "3", "-1"),),
                "insert into {t} select * from (select stack(6, 1, 'a', 2, 'b', 3, 'c', 4, 'd', 5, 'e', 6, 'f') "
                "as (id, s)) x distribute by id",
            ),
            With((("mapreduce.job.reduces", "1", "-1"),), "delete from {t} where id in (1, 3)"),
            With((("mapreduce.job.reduces", "2", "-1"),), "delete from {t} where id = 6"),
            "update {t} set s = 'u' where id in (2, 4)",
        ),
        changes(),
    ),
)

EVOLVED = (
    TableKind(
        "evolved",
        table(
            ID_AND_TEXT,
            f"insert into {{t}} values {rows(1, 3)}",
            "alter table {t} add columns (extra int)",
            "insert into {t} values (4, 'd', 44), (5, 'e', null)",
            "update {t} set extra = 11 where id = 1",
            "alter table {t} change column id id bigint",
            "insert into {t} values (5000000000, 'big', 1)",
            "delete from {t} where id = 2",
        ),
        (
            "insert into {t} values (101, 'top', 7)",
            "alter table {t} change column extra extra bigint",
            "insert into {t} values (102, 'top', 7000000000)",
            "update {t} set extra = 8000000000 where id in (3, 101)",
            "delete from {t} where id in (4, 102)",
        ),
    ),
)

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
    compressed("LZ4", HIVE_4),
    compressed("ZSTD", HIVE_4),
)


def insert_only(name: str, definition: str, storage: str, partition: str = "") -> TableKind:
    """An insert-only table with an aborted write in its middle."""
    into = "insert into {t} " + ("partition(p) " if partition else "")
    more = (partition,) if partition else ()
    stored = f"stored as {storage} tblproperties('transactional'='true', 'transactional_properties'='insert_only')"
    return TableKind(
        f"insert_only_{name}",
        table(
            definition,
            f"{into}values {rows(1, 3, *more)}",
            Aborted(f"{into}values {rows(31, 33, *more)}"),
            f"{into}values {rows(4, 5, *more)}",
            stored=stored,
        ),
        (f"{into}values {rows(6, 8, *more)}", f"{into}values {rows(9, 9, *more)}"),
        full_acid=False,
    )


INSERT_ONLY = (
    insert_only("orc", ID_AND_TEXT, "orc"),
    insert_only("parquet", ID_AND_TEXT, "parquet"),
    insert_only("text", ID_AND_TEXT, "textfile"),
    insert_only("orc_buckets", f"{ID_AND_TEXT} clustered by (id) into 2 buckets", "orc"),
    insert_only("text_buckets", f"{ID_AND_TEXT} clustered by (id) into 2 buckets", "textfile"),
    insert_only("parquet_partitions", f"{ID_AND_TEXT} partitioned by (p string)", "parquet", "'x'"),
)

KINDS = (
    PLAIN,
    *BUCKETED,
    *PARTITIONED,
    *STATEMENTS,
    *LOADED,
    *CONVERTED,
    *ABORTED,
    *DELETED,
    *EVOLVED,
    *ALL_TYPES,
    *COMPRESSED,
    *INSERT_ONLY,
)
