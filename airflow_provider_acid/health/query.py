"""Pages and sums of the figures of all partitions, computed on Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.health.arrow_form import FIGURES, KEYS
from airflow_provider_acid.health.reader import LAST_COMPACTION
from airflow_provider_acid.health.values import HealthState

MAX_PAGE = 500
"""Most rows of one page."""

SORT_COLUMNS = frozenset({*FIGURES, LAST_COMPACTION, "delta_count"})
"""What pages may be sorted by; ``delta_count`` are deltas and delete deltas together."""

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
    matching = partitions.filter(_mask(partitions, query))
    total = matching.num_rows
    if query.offset >= total:
        return PartitionPage(total)
    if query.sort == "delta_count":
        counts = pc.add(matching["deltas"], matching["delete_deltas"])
        matching = matching.append_column("delta_count", counts)
    names = [name for name in KEYS if name != query.sort]
    order = "descending" if query.descending else "ascending"
    keys = [(query.sort, order), *((name, "ascending") for name in names)]
    # Whoever turns pages looks at the first ones, so that seldom all is sorted.
    places = pc.sort_indices(matching.select([query.sort, *names]), sort_keys=keys)
    return PartitionPage(total, matching.take(places[query.offset : query.offset + query.limit]).to_pylist())


def one_of(partitions: pa.Table, key: Sequence[str]) -> dict[str, object] | None:
    """The figures of one partition; None where they are not known."""
    mask: pa.ChunkedArray | None = None
    for name, value in zip(KEYS, key, strict=True):
        equal = pc.equal(partitions[name], value)
        mask = equal if mask is None else pc.and_(mask, equal)
    found = partitions.filter(mask).slice(0, 1).to_pylist()
    return found[0] if found else None


def overview(partitions: pa.Table, metastore: str) -> dict[str, object]:
    """Sums over all partitions of a metastore: by state, of the figures, and the worst tables."""
    rows = partitions.filter(pc.equal(partitions["metastore"], metastore))
    states = {value["values"]: value["counts"] for value in rows["state"].value_counts().to_pylist()}
    sums = {name: pc.sum(rows[name]).as_py() or 0 for name in _SUMS}
    by_table = rows.group_by(["database", "table"]).aggregate([([], "count_all"), ("delta_bytes", "sum")])
    return {
        "partitions": rows.num_rows,
        "tables": by_table.num_rows,
        "states": {state.value: states.get(state.value, 0) for state in HealthState},
        **sums,
        "oldest_evaluation_ms": pc.min(rows["evaluated_ms"]).as_py(),
        "newest_evaluation_ms": pc.max(rows["evaluated_ms"]).as_py(),
    }


def metastores_of(partitions: pa.Table) -> list[str]:
    """Ids of the connections from which something is known."""
    return sorted(partitions["metastore"].unique().to_pylist())


def _mask(partitions: pa.Table, query: PartitionQuery) -> pa.ChunkedArray:
    mask = pc.is_valid(partitions["metastore"])
    for name in ("metastore", "database", "table"):
        wanted = getattr(query, name)
        if wanted:
            mask = pc.and_(mask, pc.equal(partitions[name], wanted))
    if query.states:
        mask = pc.and_(mask, pc.is_in(partitions["state"], value_set=pa.array(query.states, pa.string())))
    if query.search:
        tables = pc.binary_join_element_wise(partitions["database"], partitions["table"], ".")
        names = pc.binary_join_element_wise(tables, partitions["partition"], "/")
        mask = pc.and_(mask, pc.match_substring(names, query.search, ignore_case=True))
    return mask
