"""Compacts the same tables by this project, by Hive 3.1.3's own compactor, and copies them; compares the times.

See docs/measurements.md. Everything is made in a temporary folder (TMPDIR) and removed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from benchmarks.hive_workers import HIVE_WORKERS, measure_hive_workers
from benchmarks.measured import MEANINGS, Findings
from benchmarks.merges import Side, measure_merge
from benchmarks.metastore_evaluation import hive_4_metastore, measure_evaluation, measure_simulated_evaluation
from benchmarks.other_sides import CopySide, HiveSide, hive_side
from benchmarks.project_side import ProjectSide, project_side
from benchmarks.reading import measure_reading
from benchmarks.report import as_json, as_picture, as_text
from benchmarks.simulated_chain import measure_simulated_chain
from benchmarks.sizes import FULL, QUICK, TINY, Sizes
from benchmarks.small_chain import CHAIN_KEYS, STORE_KEYS, ChainPlace, measure_chain_on, measure_small_chain
from benchmarks.small_partitions import measure_small_partitions
from benchmarks.spark_places import SparkPlace, cluster_place
from benchmarks.stores import STORES, Warehouse
from tests.harness.metastore_server import MetastoreServer


@dataclass(frozen=True)
class Servers:
    """Start what is compared with: servers of the run's own, unless somebody has some."""

    hive: Callable[[Path], AbstractContextManager[HiveSide]] = hive_side
    metastore: Callable[[Path], AbstractContextManager[MetastoreServer]] = hive_4_metastore
    stores: Mapping[str, Callable[[], AbstractContextManager[Warehouse]]] = field(default_factory=lambda: STORES)


class Bench:
    """One run: what several works need is started once, when the first of them needs it.

    :param folder: everything is made below it.
    :param on_cluster: this project's tasks run on a standalone cluster.
    """

    def __init__(self, sizes: Sizes, folder: Path, servers: Servers, stack: ExitStack, on_cluster: bool) -> None:
        self._sizes = sizes
        self._on_cluster = on_cluster
        self._folder = folder
        self._servers = servers
        self._stack = stack

    @cached_property
    def spark(self) -> SparkPlace:
        """Where this project's tasks run."""
        if not self._on_cluster:
            return SparkPlace()
        self.say("starting a Spark cluster")
        return self._stack.enter_context(cluster_place(self._folder / "cluster"))

    @cached_property
    def project(self) -> ProjectSide:
        """The Spark session."""
        spark = self.spark
        self.say("starting Spark")
        runs = self._folder / "runs"
        runs.mkdir()
        return self._stack.enter_context(project_side(runs, spark))

    @cached_property
    def hive(self) -> HiveSide:
        """Hive's engine."""
        self.say("starting Hive 3.1.3")
        return self._stack.enter_context(self._servers.hive(self._folder / "hive"))

    def merges(self, keys: Sequence[str]) -> Findings:
        """The works that have one of the keys, and those that have none where all are; by Hive where it counts."""
        found = Findings()
        for merge in self._sizes.merges:
            wanted = {key: sides for key, sides in merge.keys.items() if key in keys}
            if wanted or (not merge.keys and set(keys) == set(MEANINGS)):
                needs_hive = not wanted or any(HiveSide.name in sides for sides in wanted.values())
                sides: list[Side] = [self.project, *([self.hive] if needs_hive else []), CopySide()]
                only = replace(merge, keys=wanted)
                found += measure_merge(only, sides, self._folder, self._sizes.rounds, self.say)
        return found

    def small_partitions(self) -> Findings:
        """``hive_vs_small100``."""
        return measure_small_partitions(self.hive, self.spark, self._folder / "small", self._sizes.small, self.say)

    def evaluation(self) -> Findings:
        """``evaluate_vs_listing``."""
        found = Findings()
        self.say("evaluation: starting Hive 4's metastore")
        with self._servers.metastore(self._folder / "evaluation") as server:
            found += measure_evaluation(server, self._sizes.partitions, self._sizes.rounds, self.say)
        for partitions in self._sizes.simulated_partitions:
            found += measure_simulated_evaluation(partitions, self._sizes.rounds.measured, self.say)
        return found

    def small_chain(self, *, by_hive: bool) -> Findings:
        """The keys of ``chain_small``.

        :param by_hive: also those that compare with Hive's Workers.
        """
        self.say("chain: starting Hive 4's metastore")
        folder = self._folder / "chained"
        with self._servers.metastore(self._folder / "chain") as server:
            found = measure_small_chain(server, self.spark, folder, self._sizes.chain, self.say)
            if by_hive:
                (rate,) = (one.value for one in found.ratios if one.key == "chain_small_per_second")
                found += measure_hive_workers(server, folder, self._sizes.chain_by_hive, rate, self.say)
            return found

    def chain_on(self, store: str) -> Findings:
        """The chain on a store that is no disk of this machine."""
        self.say(f"chain on {store}: starting Hive 4's metastore and the store")
        folder = self._folder / f"chained-on-{store}"
        folder.mkdir()
        with self._servers.metastore(folder / "metastore") as server, self._servers.stores[store]() as warehouse:
            place = ChainPlace.on_store(store, folder, warehouse)
            return measure_chain_on(place, server, self.spark, self._sizes.chain_on_stores, self.say)

    def simulated_chain(self) -> Findings:
        """``chain_simulated_per_second``."""
        return measure_simulated_chain(self._folder / "simulated", self._sizes.simulated_chain, self.say)

    def reading(self) -> Findings:
        """``read_vs_hive_result``."""
        return measure_reading(self.hive, self.project, self._sizes.read, self._folder, self._sizes.rounds, self.say)

    def run(self, keys: Sequence[str]) -> Findings:
        """All works that the keys ask for."""
        works: list[tuple[Sequence[str], Callable[[], Findings]]] = [
            (["evaluate_vs_listing"], self.evaluation),
            (["hive_vs_small100"], self.small_partitions),
            ([*CHAIN_KEYS, *HIVE_WORKERS], partial(self.small_chain, by_hive=bool(set(HIVE_WORKERS) & set(keys)))),
            *(([key], partial(self.chain_on, store)) for store, key in STORE_KEYS.items()),
            (["chain_simulated_per_second"], self.simulated_chain),
            (["read_vs_hive_result"], self.reading),
        ]
        found = self.merges(keys)
        for ones, work in works:
            if set(ones) & set(keys):
                found += work()
        if "project" in vars(self):
            note = f"starting the Spark session took {self.project.start_seconds:.1f} s, which no merge's time includes"
            found += Findings(notes=(note,))
        return found

    @staticmethod
    def say(text: str) -> None:
        """Where it is; what is measured goes to standard output."""
        print(f"benchmark: {text}", file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None, servers: Servers = Servers()) -> int:  # noqa: B008 - immutable
    """Measure, print the tables, write plot and JSON.

    :param argv: command line arguments.
    """
    parser = argparse.ArgumentParser(prog="./benchmark", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, a few minutes")
    parser.add_argument("--tiny", action="store_true", help="sizes that say nothing, to see that it works")
    parser.add_argument("--only", nargs="+", metavar="KEY", choices=MEANINGS, help="of " + ", ".join(MEANINGS))
    parser.add_argument("--cluster", action="store_true", help="this project's side on a Spark cluster of two workers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured there")
    parser.add_argument("--plot", type=Path, metavar="FILE", default=Path("benchmark.svg"), help="the plot's file")
    arguments = parser.parse_args(argv)
    sizes = TINY if arguments.tiny else QUICK if arguments.quick else FULL
    with tempfile.TemporaryDirectory(prefix="acid-benchmark-") as folder, ExitStack() as stack:
        bench = Bench(sizes, Path(folder), servers, stack, arguments.cluster)
        findings = bench.run(arguments.only or list(MEANINGS))
    print("\n".join(as_text(findings)))
    arguments.plot.write_text(as_picture(findings))
    if arguments.json is not None:
        arguments.json.write_text(as_json(findings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
