"""What an evaluation costs, beside bare listings of the same partitions: python -m benchmarks.evaluation --help.

The metastore is a fake that answers at once, so only storage and Python count. Everything that is compared is measured
in turns, round after round, since the machine may be doing something else; a ratio is the median of the rounds' own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from statistics import median

from airflow_provider_acid.compaction.evaluate.table_listing import locations
from benchmarks.stores import STORES, Warehouse
from tests.unit.compaction.evaluated_tables import EvaluatedTables

DELTAS = [f"delta_{number:07d}_{number:07d}_0000" for number in (1, 2, 3)]


@dataclass(frozen=True, order=True)
class Work:
    """Something to measure: the first so many partitions of the table, looked at by so many threads."""

    partitions: int
    what: str
    threads: int


@dataclass(frozen=True)
class Taken:
    """What it took, by the clock and of this process's processor time."""

    seconds: float
    processor_seconds: float


def evaluate(warehouse: Warehouse, work: Work) -> None:
    """What a sensor does."""
    site = EvaluatedTables({"t": work.partitions}, warehouse.storages, warehouse=f"{warehouse.uri}/d.db")
    found = site.evaluate(threads=work.threads)
    assert len(found.due) == work.partitions, found.skipped[:3]
    # One of them for the id of the metastore's database, which what is due carries.
    assert len(site.client.calls) <= work.partitions / 1000 + 11


def list_only(warehouse: Warehouse, work: Work) -> None:
    """What no evaluation can do without: the partitions from the metastore, and a listing of each."""
    client = EvaluatedTables({"t": work.partitions}, warehouse.storages, warehouse=f"{warehouse.uri}/d.db").client
    places = [location for _, location, _ in locations(client, client.get_table("d", "t"))]
    with ThreadPoolExecutor(work.threads) as threads:
        listed = threads.map(lambda location: len(warehouse.storages.open(location).list().directories), places)
        assert sum(listed) == len(DELTAS) * work.partitions


KINDS: dict[str, Callable[[Warehouse, Work], None]] = {"evaluation": evaluate, "listing": list_only}


def measure(warehouse: Warehouse, works: Sequence[Work], rounds: int) -> dict[Work, list[Taken]]:
    """Each work once per round, after a round that only warms caches and connections up."""
    taken: dict[Work, list[Taken]] = {work: [] for work in works}
    for _ in range(rounds + 1):
        for work in works:
            clock, processor = time.perf_counter(), time.process_time()
            KINDS[work.what](warehouse, work)
            taken[work].append(Taken(time.perf_counter() - clock, time.process_time() - processor))
    return {work: of_work[1:] for work, of_work in taken.items()}


def report(taken: dict[Work, list[Taken]]) -> Iterator[str]:
    """A table in Markdown; the columns with a ÷ are ratios, with the lowest and the highest of all rounds.

    Seconds and processor seconds are medians. The last columns say how the cost of one partition grows.
    """
    fewest, fewest_threads = min(work.partitions for work in taken), min(work.threads for work in taken)
    yield (
        "| partitions | threads | | s | CPU s | s ÷ listing | CPU s ÷ listing "
        f"| s ÷ {fewest_threads} thread(s) | s each ÷ {fewest} partitions | CPU s each ÷ {fewest} partitions |"
    )
    yield "|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|"
    for work, of_work in sorted(taken.items()):
        listing = taken[replace(work, what="listing")]
        small, share = taken[replace(work, partitions=fewest)], fewest / work.partitions
        cells = [
            f"{work.partitions:,}",
            str(work.threads),
            work.what,
            f"{median(by_clock(of_work)):.2f}",
            f"{median(by_processor(of_work)):.2f}",
            ratio(by_clock(of_work), by_clock(listing)),
            ratio(by_processor(of_work), by_processor(listing)),
            ratio(by_clock(of_work), by_clock(taken[replace(work, threads=fewest_threads)])),
            ratio(by_clock(of_work), by_clock(small), share),
            ratio(by_processor(of_work), by_processor(small), share),
        ]
        yield f"| {' | '.join(cells)} |"


def by_clock(taken: Iterable[Taken]) -> list[float]:
    """The seconds of each round."""
    return [one.seconds for one in taken]


def by_processor(taken: Iterable[Taken]) -> list[float]:
    """The processor seconds of each round."""
    return [one.processor_seconds for one in taken]


def ratio(these: Sequence[float], those: Sequence[float], factor: float = 1.0) -> str:
    """Median, lowest and highest ratio of two kinds of work in the same round."""
    ratios = [factor * this / that for this, that in zip(these, those, strict=True)]
    return f"{median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def run(store: str, partitions: Sequence[int], threads: Sequence[int], rounds: int) -> Iterator[str]:
    """Fill a table, measure, and give the report line by line.

    :param partitions: sizes to measure.
    :param threads: numbers of threads to measure.
    """
    works = [Work(size, what, number) for size in partitions for number in threads for what in KINDS]
    with STORES[store]() as warehouse:
        names = [f"p={number:05d}" for number in range(max(partitions))]
        warehouse.fill(f"d.db/t/{name}/{delta}" for name in names for delta in DELTAS)
        yield from report(measure(warehouse, works, rounds))


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("store", choices=sorted(STORES))
    parser.add_argument("--partitions", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    for line in run(arguments.store, arguments.partitions, arguments.threads, arguments.rounds):
        print(line)


if __name__ == "__main__":
    main()
