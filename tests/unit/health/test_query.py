"""Pages of any number of partitions are what a plain filter, sort and slice would give."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.health.arrow_form import FIGURES, KEYS, key_of, table_of
from airflow_provider_acid.health.query import (
    MAX_PAGE,
    SORT_COLUMNS,
    PartitionQuery,
    one_of,
    overview,
    page_of,
    tables_of,
)
from airflow_provider_acid.health.reader import LAST_COMPACTION
from airflow_provider_acid.health.values import HealthState, PartitionHealth

EVERYTHING = PartitionQuery(limit=MAX_PAGE)


def partition(number: int, chance: random.Random) -> PartitionHealth:
    return PartitionHealth(
        chance.choice(["m", "n"]),
        Entity(chance.choice(["sales", "web"]), f"t{number % 3}", f"Day={number:04d}"),
        chance.choice(list(HealthState)),
        "because",
        deltas=chance.randrange(4),
        delete_deltas=chance.randrange(3),
        base_bytes=chance.randrange(5),
        delta_size_ratio=chance.choice([None, 0.5, 2.0]),
        obsolete_bytes=chance.randrange(3),
        evaluated_ms=chance.choice([None, 7, 8]),
    )


def table(count: int) -> pa.Table:
    chance = random.Random(count)
    rows = table_of([partition(number, chance) for number in range(count)]).select(FIGURES)
    return rows.append_column(LAST_COMPACTION, pa.array([chance.choice([None, 1, 2]) for _ in range(count)]))


PARTITIONS = table(300)


def expected(query: PartitionQuery) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = PARTITIONS.to_pylist()
    for name in ("metastore", "database", "table"):
        rows = [row for row in rows if getattr(query, name) in ("", row[name])]
    rows = [row for row in rows if not query.states or row["state"] in query.states]
    text = "{database}.{table}/{partition}"
    rows = [row for row in rows if query.search.lower() in text.format(**row).lower()]
    rows.sort(key=lambda row: [row[name] for name in KEYS])
    if query.sort == "delta_count":
        rows = [{**row, "delta_count": row["deltas"] + row["delete_deltas"]} for row in rows]
    known = [row for row in rows if row[query.sort] is not None]
    unknown = [row for row in rows if row[query.sort] is None]
    known.sort(key=lambda row: row[query.sort], reverse=query.descending)
    if query.sort in KEYS:
        others = [name for name in KEYS if name != query.sort]
        known.sort(key=lambda row: [row[name] for name in others])
        known.sort(key=lambda row: row[query.sort], reverse=query.descending)
    return known + unknown


@pytest.mark.parametrize("sort", sorted(SORT_COLUMNS))
@pytest.mark.parametrize("descending", [True, False])
def test_it_is_sorted_by_any_column_with_unknown_values_last(sort: str, descending: bool) -> None:
    query = replace(EVERYTHING, sort=sort, descending=descending)
    assert list(page_of(PARTITIONS, query).rows) == expected(query)


@pytest.mark.parametrize(
    "changes",
    [
        {"metastore": "m"},
        {"metastore": "m", "database": "web", "table": "t1"},
        {"states": ("due_major", "held")},
        {"search": "WEB.T1/day=00"},
        {"search": "no such"},
        {"search": "%"},
        {"metastore": "n", "states": ("healthy",), "search": "9"},
    ],
)
def test_it_is_filtered_by_all_that_is_given(changes: dict[str, Any]) -> None:
    query = replace(EVERYTHING, **changes)
    page = page_of(PARTITIONS, query)
    assert (page.total, list(page.rows)) == (len(expected(query)), expected(query))


def test_pages_hold_each_partition_once() -> None:
    pages = [page_of(PARTITIONS, replace(EVERYTHING, offset=start, limit=7)) for start in range(0, 300, 7)]
    assert [row for page in pages for row in page.rows] == expected(EVERYTHING)
    assert page_of(PARTITIONS, replace(EVERYTHING, offset=300)).rows == []


@pytest.mark.parametrize(
    "changes", [{"sort": "directories"}, {"states": ("ill",)}, {"limit": MAX_PAGE + 1}, {"limit": 0}, {"offset": -1}]
)
def test_what_cannot_be_asked_for_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        replace(EVERYTHING, **changes)


def test_one_partition_is_found_by_its_exact_name() -> None:
    row = PARTITIONS.to_pylist()[17]
    entity = Entity(row["database"], row["table"], row["partition"])
    assert one_of(PARTITIONS, key_of(row["metastore"], entity)) == row
    assert one_of(PARTITIONS, key_of(row["metastore"], replace(entity, partition="day=0017"))) is None


def test_the_overview_counts_the_partitions_of_one_metastore() -> None:
    rows = [row for row in PARTITIONS.to_pylist() if row["metastore"] == "m"]
    found = overview(PARTITIONS, "m")
    assert found["partitions"] == len(rows)
    assert found["tables"] == len({(row["database"], row["table"]) for row in rows})
    assert found["deltas"] == sum(row["deltas"] for row in rows)
    assert found["states"] == {
        state.value: sum(row["state"] == state.value for row in rows) for state in HealthState
    }  # fmt: skip
    empty = overview(PARTITIONS, "nowhere")
    assert (empty["partitions"], empty["obsolete_bytes"], empty["newest_evaluation_ms"]) == (0, 0, None)


def test_a_table_has_the_sums_of_its_partitions() -> None:
    rows = [row for row in PARTITIONS.to_pylist() if row["metastore"] == "m"]
    found = tables_of(PARTITIONS, "m")
    assert {(each["database"], each["table"]) for each in found} == {(row["database"], row["table"]) for row in rows}
    for each in found:
        of_it = [row for row in rows if (row["database"], row["table"]) == (each["database"], each["table"])]
        states = [row["state"] for row in of_it]
        assert each["partitions"] == len(of_it)
        assert each["due"] == states.count("due_minor") + states.count("due_major")
        assert each["held"] == states.count("held")
        for name in ("deltas", "delete_deltas", "base_bytes", "delta_bytes", "obsolete_bytes"):
            assert each[name] == sum(row[name] for row in of_it)
        assert each["oldest_evaluation_ms"] == min(row["evaluated_ms"] for row in of_it if row["evaluated_ms"])
    keys = [(-each["due"], each["database"], each["table"]) for each in found]  # type: ignore[operator]
    assert keys == sorted(keys)
    assert tables_of(PARTITIONS, "nowhere") == []


def test_a_hundred_thousand_partitions_are_paged_in_little_memory() -> None:
    one = table(1000)
    many = pa.concat_tables(
        one.set_column(KEYS.index("table") + 0, "table", pa.array([f"t{copy:03d}"] * 1000)) for copy in range(100)
    )
    assert many.num_rows == 100_000
    assert many.nbytes < 25_000_000
    before = pa.total_allocated_bytes()
    query = PartitionQuery(sort="table", descending=False, limit=MAX_PAGE)
    seen = [
        (row["table"], row["partition"])
        for start in range(0, 100_000, 20_000)
        for row in page_of(many, replace(query, offset=start)).rows
    ]
    assert len(seen) == len(set(seen)) == 5 * MAX_PAGE
    assert [table for table, _ in seen] == [f"t{start:03d}" for start in range(0, 100, 20) for _ in range(MAX_PAGE)]
    assert pa.total_allocated_bytes() - before < 1_000_000
    assert page_of(many, replace(query, search="t042/day=0007")).total == 1
