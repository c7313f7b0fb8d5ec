"""Pages and sums of the figures of all partitions, computed on Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.health.arrow_form import FIGURES, KEYS, has_key, texts_in
from airflow_provider_acid.health.reader import LAST_COMPACTION
from airflow_provider_acid.health.values import HealthState

MAX_PAGE = 500
"""Most rows of one page."""

SORT_COLUMNS = frozenset({*FIGURES, LAST_COMPACTION, "delta_count"})
"""What pages may be sorted by; ``delta_count`` are deltas and delete deltas together."""

_Order = Literal["ascending", "descending"]

_SUMS = ("deltas", "delete_deltas", "base_bytes", "delta_bytes", "obsolete_bytes", "aborted_directories")


@dataclass(frozen=True)
class PartitionQuery:
    """Which partitions, in which order, and which part of them.

    :param search: a part of ``database.table/partition``, in any case; empty for all.
    :param states: values of :class:`~.values.HealthState`; none for all.
    :param offset: rows before the page.
    :raises ConfigurationError: a value cannot be used.
    """

    metastore: str = ""
    database: str = ""
    table: str = ""
    search: str = ""
    states: tuple[str, ...] = ()
    sort: str = "delta_count"
    descending: bool = True
    offset: int = 0
    limit: int = 50

    def __post_init__(self) -> None:
        if self.sort not in SORT_COLUMNS:
            raise ConfigurationError(f"sort {self.sort!r}", "is no column", f"use one of {sorted(SORT_COLUMNS)}")
        known = {state.value for state in HealthState}
        if unknown := sorted(set(self.states) - known):
            raise ConfigurationError(f"state {unknown[0]!r}", "is unknown", f"use some of {sorted(known)}")
        if not 1 <= self.limit <= MAX_PAGE or self.offset < 0:
            raise ConfigurationError("page", f"from {self.offset} of {self.limit} rows", f"ask for 1 to {MAX_PAGE}")


@dataclass(frozen=True)
class PartitionPage:
    """A part of the partitions that match.

    :param total: how many match.
    """

    total: int
    rows: Sequence[dict[str, object]] = field(default_factory=list)


def page_of(partitions: pa.Table, query: PartitionQuery) -> PartitionPage:
    """The page that a query asks for; rows that compare equal come in the order of their names."""
    matching = _matching(partitions, query)
    total = matching.num_rows
    if query.offset >= total:
        return PartitionPage(total)
    if query.sort == "delta_count":
        counts: Any = pc.add(matching["deltas"], matching["delete_deltas"])
        matching = matching.append_column("delta_count", counts)
    names = [name for name in KEYS if name != query.sort]
    keys: list[tuple[str, _Order]] = [(name, "ascending") for name in names]
    keys.insert(0, (query.sort, "descending" if query.descending else "ascending"))
    places = pc.sort_indices(matching.select([query.sort, *names]), sort_keys=keys)
    return PartitionPage(total, matching.take(places[query.offset : query.offset + query.limit]).to_pylist())


def one_of(partitions: pa.Table, key: Sequence[str]) -> dict[str, object] | None:
    """The figures of one partition; None where they are not known."""
    found = partitions.filter(has_key(key)).slice(0, 1).to_pylist()
    return found[0] if found else None


def overview(partitions: pa.Table, metastore: str) -> dict[str, object]:
    """Sums over all partitions of a metastore: by state, and of the figures."""
    rows = partitions.filter(pc.field("metastore") == metastore)
    states = rows.group_by("state").aggregate([([], "count_all")])
    counts = dict(zip(texts_in(states, "state"), states["count_all"].to_pylist(), strict=True))
    sums = {name: pc.sum(rows[name]).as_py() or 0 for name in _SUMS}
    return {
        "partitions": rows.num_rows,
        "tables": rows.group_by(["database", "table"]).aggregate([]).num_rows,
        "states": {state.value: counts.get(state.value, 0) for state in HealthState},
        **sums,
        "oldest_evaluation_ms": pc.min(rows["evaluated_ms"]).as_py(),
        "newest_evaluation_ms": pc.max(rows["evaluated_ms"]).as_py(),
    }


def tables_of(partitions: pa.Table, metastore: str) -> list[dict[str, object]]:
    """A row per table of a metastore, those first whose due partitions are most: how many of its partitions are due and
    held back, the sums of its figures, and when the oldest of them was taken.
    """
    rows = partitions.filter(pc.field("metastore") == metastore)
    due = [HealthState.DUE_MINOR.value, HealthState.DUE_MAJOR.value]
    wanted = {"due": due, "held": [HealthState.HELD.value]}
    for name, states in wanted.items():
        is_one: Any = pc.is_in(rows["state"], pa.array(states, pa.string()))
        rows = rows.append_column(name, is_one.cast(pa.int64()))
    sums = [*wanted, *_SUMS]
    found = rows.group_by(["database", "table"]).aggregate(
        [([], "count_all"), ("evaluated_ms", "min"), *((name, "sum") for name in sums)]
    )
    names = {"count_all": "partitions", "evaluated_ms_min": "oldest_evaluation_ms"}
    names |= {f"{name}_sum": name for name in sums}
    found = found.rename_columns([names.get(name, name) for name in found.column_names])
    keys: list[tuple[str, _Order]] = [("due", "descending"), ("database", "ascending"), ("table", "ascending")]
    return [dict(row) for row in found.sort_by(keys).to_pylist()]


def metastores_of(partitions: pa.Table) -> list[str]:
    """Ids of the connections from which something is known."""
    return sorted(texts_in(partitions.group_by("metastore").aggregate([]), "metastore"))


def _matching(partitions: pa.Table, query: PartitionQuery) -> pa.Table:
    wanted = {"metastore": query.metastore, "database": query.database, "table": query.table}
    conditions = [pc.field(name) == value for name, value in wanted.items() if value]
    if query.states:
        conditions.append(pc.field("state").isin(pa.array(query.states, pa.string())))
    matching = partitions.filter(reduce(and_, conditions)) if conditions else partitions
    if not query.search:
        return matching
    join: Any = pc.binary_join_element_wise
    names = join(join(matching["database"], matching["table"], "."), matching["partition"], "/")
    mask: Any = pc.match_substring(names, query.search, ignore_case=True)
    return matching.filter(mask)
