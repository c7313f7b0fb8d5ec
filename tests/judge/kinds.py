"""The kinds of tables, each with the SQL that makes it and the SQL that goes on top of it."""

from __future__ import annotations

from tests.harness.hive_engine_program import HIVE_3
from tests.judge.kinds_by_content import ALL_TYPES, COMPRESSED, INSERT_ONLY, MANY_STRIPES
from tests.judge.statements import Aborted, Statement, With, WriterDied, streamed
from tests.judge.table_kind import CONVERT, ID_AND_TEXT, PLAIN_FILES, TableKind, changes, rows, table

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
    proves="W-16 W-28",
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
        proves="W-24",
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
        proves="W-26",
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
        proves="W-26",
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
        proves="U-07",
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
        proves="W-35",
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
        proves="L-02 L-03",
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
        proves="L-02 L-03",
    ),
    TableKind(
        "load_data_only",
        table(ID_AND_TEXT, staged((1, "l1"), (2, "l2"), (3, "l3")), load(), staged((4, "l4"), (5, "l5")), load()),
        changes(),
        proves="L-01",
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
        proves="W-33",
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
        proves="L-12 L-13",
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
        proves="L-04 L-12",
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
        proves="L-08",
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
        proves="L-14 U-02",
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
        proves="W-48 A-16",
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
        proves="W-22",
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
        proves="W-09 W-22",
    ),
)

DELETED = (
    TableKind(
        "all_deleted",
        table(ID_AND_TEXT, f"insert into {{t}} values {rows(1, 3)}", "delete from {t} where id > 0"),
        (f"insert into {{t}} values {rows(1, 5)}", *changes()),
        proves="W-36",
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
        proves="U-01 U-05",
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
        proves="W-38",
    ),
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
    *MANY_STRIPES,
    *INSERT_ONLY,
)
