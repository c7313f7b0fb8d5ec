"""A batch on a real metastore whose Spark application is played by the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.sealing import RunKey
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.outcomes import Outcome
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.run.run_place import RunPlace, run_name
from airflow_provider_acid.compaction.work.batch import CompactionBatch
from airflow_provider_acid.compaction.work.worker import LookedAt, Worker
from airflow_provider_acid.merge.app import driver_run as job
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.plain_job import run_plainly
from tests.integration.compaction_site import Site, due

PATIENCE_SECONDS = 60.0


def play(
    site: Site, entities: Sequence[Entity], *, max_active: int = 4, when_planned: Callable[[], None] = lambda: None
) -> dict[str, Outcome]:
    """The outcomes by partition, or table.

    :param when_planned: called when the first partition is begun, and none is merged.
    """

    looked_at = LookedAt.of_task("task", entities)

    @contextmanager
    def open_worker() -> Iterator[Worker]:
        with site.client.for_another_thread() as client:
            yield replace(site, client=client).worker(looked_at=looked_at)

    def make_run_directory(worker: Worker, first: ActiveCompaction) -> RunDirectory:
        storages = site.settings.storages
        place = looked_at.take(RunPlace.of(storages, site.settings.run_directory, first.table_location))
        return RunDirectory(storages, place, RunKey.new(run_name(worker.metastore)))

    items = [due(entity) for entity in entities]
    batch = CompactionBatch(items, open_worker, make_run_directory, max_active=max_active, poll_seconds=0.05)
    batch.start()
    run = batch.wait_until_planned()
    if run is not None:
        when_planned()
        _be_the_application(job.DriverRun(LocalStorage(run.location), run.key.secret))
    batch.application_ended()
    return {outcome.entity.partition or outcome.entity.table: outcome for outcome in batch.join()}


def _be_the_application(application: job.DriverRun) -> None:
    patience = threading.Event()
    for _ in range(int(PATIENCE_SECONDS / 0.05)):
        seen = application.look()
        for item in seen.plans - seen.results:
            application.write_result(item, run_plainly(application.plan(item)))
        if seen.ended:
            return
        patience.wait(0.05)
    raise AssertionError("the operator did not end it")
