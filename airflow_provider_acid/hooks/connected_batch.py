"""Batches of partitions on the metastore that an endpoint names; for Airflow's operator and for the command."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.sealing import RunKey
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.outcomes import DuePartition, check_metastore
from airflow_provider_acid.compaction.run.run_directory import IDLE_TIMEOUT_SECONDS, RunDirectory
from airflow_provider_acid.compaction.run.run_place import RunPlace, run_name
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.work.batch import CompactionBatch
from airflow_provider_acid.compaction.work.window_end import WindowEnd
from airflow_provider_acid.compaction.work.worker import LookedAt, Worker
from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.metastore.transaction import CompactionTransaction

DEFAULT_MAX_ACTIVE_PARTITIONS = 4
MAX_SMALL_PARTITIONS = 64
"""As many small partitions are in work at the same time unless ``max_active_partitions`` says otherwise."""


def connected_batch(
    endpoint: MetastoreEndpoint,
    settings: CompactionSettings,
    items: Sequence[DuePartition],
    identity: str,
    *,
    max_active: int = DEFAULT_MAX_ACTIVE_PARTITIONS,
    max_small: int = MAX_SMALL_PARTITIONS,
    idle_timeout_seconds: float = IDLE_TIMEOUT_SECONDS,
    window_end: WindowEnd | None = None,
) -> CompactionBatch:
    """A batch whose threads have metastore connections of their own; not started.

    :param identity: see :class:`.Worker`.
    :param idle_timeout_seconds: the application ends itself after so long without a sign of life of the batch.

    The others are those of :class:`.CompactionBatch`.
    """
    looked_at = LookedAt.of_task(identity, [item.entity for item in items])

    def check(worker: Worker) -> None:
        check_metastore(items, worker.metastore)
        location = worker.table_location(items)
        if location is not None:
            RunPlace.of(settings.storages, settings.run_directory, location).check_usable(settings.storages)

    def make_run_directory(worker: Worker, first: ActiveCompaction) -> RunDirectory:
        place = looked_at.take(RunPlace.of(settings.storages, settings.run_directory, first.table_location))
        key = RunKey.new(run_name(worker.metastore))
        return RunDirectory(settings.storages, place, key, idle_timeout_seconds)

    return CompactionBatch(
        items,
        partial(open_connected_worker, endpoint, settings, identity, looked_at),
        make_run_directory,
        check=check,
        max_active=max_active,
        max_small=max_small,
        worker_timeout_seconds=settings.worker_timeout_seconds,
        window_end=window_end,
    )


@contextmanager
def open_connected_worker(
    endpoint: MetastoreEndpoint, settings: CompactionSettings, identity: str, looked_at: LookedAt | None = None
) -> Iterator[Worker]:
    """A worker with a metastore connection of its own, for the calling thread."""
    with endpoint.connect() as (client, queue):

        def transaction(entity: Entity, agent_info: str) -> CompactionTransaction:
            return CompactionTransaction(
                client,
                entity,
                agent_info=agent_info,
                heartbeat_seconds=settings.heartbeat_seconds,
                txn_timeout_seconds=settings.transaction_timeout_seconds,
                lock_wait_seconds=settings.lock_wait_seconds,
            )

        yield Worker(
            client, queue, transaction, settings, identity=identity, host=socket.gethostname(), looked_at=looked_at
        )
