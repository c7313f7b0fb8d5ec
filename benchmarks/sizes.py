"""How much is measured."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_provider_acid.plan.plan import CompactionType
from benchmarks.acid_tables import Shape
from benchmarks.merges import Merge
from benchmarks.rounds import Rounds
from benchmarks.row_kinds import STORE_SALES, WEB_SALES, RowKind
from benchmarks.small_partitions import SmallPartitions

_AGAINST_HIVE = ("Hive 3.1.3", "project")
_AGAINST_COPY = ("project", "copy")
_MINOR_KEYS = {"minor_vs_copy": _AGAINST_COPY, "hive_vs_minor": _AGAINST_HIVE}


@dataclass(frozen=True)
class Sizes:
    """The works of one run.

    :param partitions: how many to evaluate with a real metastore.
    :param chain: how many small ones to compact with one, and five times as many.
    :param chain_on_stores: how many on each store that is no disk of this machine.
    :param chain_by_hive: how many of them for each of Hive's workers.
    :param simulated_chain: how many to compact with a metastore and an application that are simulated.
    :param read: the table whose result Hive reads.
    """

    merges: tuple[Merge, ...]
    rounds: Rounds
    small: SmallPartitions
    partitions: int
    simulated_partitions: tuple[int, ...]
    chain: tuple[int, int]
    chain_on_stores: int
    chain_by_hive: int
    simulated_chain: int
    read: Shape


def _major(name: str, shape: Shape, key: str | None = None) -> Merge:
    return Merge(name, CompactionType.MAJOR, shape, {key: _AGAINST_HIVE} if key else {})


def _minor(name: str, shape: Shape, *, is_key: bool = False) -> Merge:
    return Merge(name, CompactionType.MINOR, shape, _MINOR_KEYS if is_key else {})


def _growth(shape: Shape) -> tuple[Merge, ...]:
    """How the cost grows with rows, files, deltas and deletes; no key is made of it."""
    return (
        _major("major, no deletes", shape),
        _major("major, deletes in 1 % of the stripes", replace(shape, touched=0.01)),
        _major("major, 8 files, deletes in 10 % of the stripes", replace(shape, files=8, touched=0.1)),
        _minor("minor, 8 files", replace(shape, files=8)),
        _minor("minor, 30 deltas", replace(shape, deltas=30)),
    )


def _minor_of(kind: RowKind, row_bytes: int, shape: Shape, rows: int) -> Merge:
    name, wide = f"minor, {row_bytes} bytes a row", replace(shape, rows=rows, kind=kind)
    return Merge(name, CompactionType.MINOR, wide, {f"minor{row_bytes}_vs_copy": _AGAINST_COPY})


def _keyed(shape: Shape, minor: Shape) -> tuple[Merge, ...]:
    return (
        _minor("minor", minor, is_key=True),
        _minor_of(STORE_SALES, 60, minor, minor.rows * 3 // 10),
        _minor_of(WEB_SALES, 200, minor, minor.rows // 12),
        _major("major, deletes in 10 % of the stripes", replace(shape, touched=0.1), "hive_vs_major10"),
        _major("major, deletes in every stripe", replace(shape, touched=1.0), "hive_vs_major100"),
    )


_MILLION = Shape(rows=1_000_000, stripe_bytes=1 << 20)
_TWENTY_MILLION = Shape(rows=20_000_000, stripe_bytes=1 << 23)

FULL = Sizes(
    merges=(
        *_keyed(_TWENTY_MILLION, Shape(rows=80_000_000)),
        *_growth(_TWENTY_MILLION),
        _minor("minor, 1,000,000 rows", _MILLION),
        _major("major, 1,000,000 rows, deletes in 10 % of the stripes", replace(_MILLION, touched=0.1)),
        _major("major, 1,000,000 rows, deletes in every stripe", replace(_MILLION, touched=1.0)),
    ),
    rounds=Rounds(measured=3),
    small=SmallPartitions(100, by_hive=10),
    partitions=10_000,
    simulated_partitions=(10_000, 100_000),
    chain=(2000, 10_000),
    chain_on_stores=500,
    chain_by_hive=5,
    simulated_chain=100_000,
    read=replace(_TWENTY_MILLION, touched=0.1),
)
"""As docs/measurements.md shows it; most of an hour, and 10 GB of disk."""

QUICK = Sizes(
    merges=_keyed(_MILLION, _MILLION),
    rounds=Rounds(measured=2),
    small=SmallPartitions(100, by_hive=2),
    partitions=2000,
    simulated_partitions=(10_000,),
    chain=(100, 500),
    chain_on_stores=50,
    chain_by_hive=2,
    simulated_chain=2000,
    read=replace(_MILLION, touched=0.1),
)
"""A few minutes."""

_TINY_TABLE = Shape(rows=30_000, stripe_bytes=1 << 16)

TINY = Sizes(
    merges=_keyed(_TINY_TABLE, _TINY_TABLE),
    rounds=Rounds(measured=1),
    small=SmallPartitions(2, by_hive=1, hive_poll_ms=20),
    partitions=50,
    simulated_partitions=(100,),
    chain=(8, 40),
    chain_on_stores=4,
    chain_by_hive=1,
    simulated_chain=40,
    read=replace(_TINY_TABLE, touched=0.1),
)
"""To see that everything works."""
