"""Hive 4's own Workers on the small partitions of :mod:`.small_chain`, from their claims to their commits."""

from __future__ import annotations

import time
from collections.abc import Set
from pathlib import Path

from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from benchmarks.measured import Findings, Measured, figure
from benchmarks.metering import Meter, tree_of
from benchmarks.other_sides import HIVE_POLL_MS, JVM_OPTIONS
from benchmarks.rounds import Say
from benchmarks.small_chain import ChainPlace, make_small_partitions
from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import HIVE_4
from tests.harness.metastore_server import MetastoreServer

HIVE_WORKERS = {"chain_small_vs_hive2": 2, "chain_small_vs_hive20": 20}
"""How many Workers Hive has, by key."""

_WORKERS = "org.apache.hadoop.hive.ql.txn.compactor.CompactorWorkers"
_LOOK_SECONDS = 0.25
_PATIENCE_SECONDS = 600.0


def measure_hive_workers(
    server: MetastoreServer, folder: Path, partitions_each: int, rate: float, say: Say
) -> Findings:
    """Have Hive compact, by its jobs in local mode, and compare.

    :param server: the metastore of :func:`~.small_chain.measure_small_chain`, which was called before.
    :param folder: the same as there.
    :param partitions_each: how many for each Worker.
    :param rate: this project's, in partitions a second.
    """
    found = Findings()
    say(f"chain: starting Hive {HIVE_4}")
    with HiveEngine(HIVE_4, folder / "hive", server, jvm_options=JVM_OPTIONS) as engine:
        polling = ("mapreduce.client.completion.pollinterval", "mapreduce.client.progressmonitor.pollinterval")
        # Statistics would be another query for each partition.
        engine.set({**dict.fromkeys(polling, str(HIVE_POLL_MS)), "hive.compactor.gather.stats": "false"})
        for key, workers in HIVE_WORKERS.items():
            partitions = partitions_each * workers
            measured = _measure(engine, server, folder, workers, partitions, say)
            found += Findings((measured,), (figure(key, rate * measured.costs[0].seconds / partitions),))
    return found


def _measure(
    engine: HiveEngine, server: MetastoreServer, folder: Path, workers: int, partitions: int, say: Say
) -> Measured:
    work = f"chain, {partitions:,} small partitions"
    say(f"{work}: compacting by {workers} workers of Hive")
    entities = make_small_partitions(server, ChainPlace.on_disk(folder), f"by_{workers}", partitions)
    meter = Meter(tree_of(engine.pid))
    with AcidMetastoreClient([MetastoreAddress(server.host, server.port)]) as client:
        requests = {client.compact(entity, CompactionType.MAJOR).id for entity in entities}
        with meter.running():
            engine.call(_WORKERS, str(workers))
            _wait_until_compacted(client, requests)
        engine.call(_WORKERS, "0")
    return Measured(work, f"Hive {HIVE_4}, {workers} workers", tuple(meter.costs))


def _wait_until_compacted(client: AcidMetastoreClient, requests: Set[int]) -> None:
    """Asks for rows that are not done: all of them, past ones too, would cost the metastore more than Hive does."""

    def in_state(state: CompactionState) -> Set[int]:
        return requests & {row.id for row in client.compactions(state=state)}

    deadline = time.monotonic() + _PATIENCE_SECONDS
    while in_state(CompactionState.INITIATED) or in_state(CompactionState.WORKING):
        if time.monotonic() > deadline:
            raise RuntimeError(f"Hive did not compact within {_PATIENCE_SECONDS:.0f} s")
        time.sleep(_LOOK_SECONDS)
    left = requests - in_state(CompactionState.READY_FOR_CLEANING)
    if left:
        raise RuntimeError(f"Hive did not compact {len(left)} of {len(requests)}")
