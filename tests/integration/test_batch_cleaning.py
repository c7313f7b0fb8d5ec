"""A partition of a batch is published and cleaned while the batch still works on others.

What holds a cleaner back is a transaction that is older than the commit, so a batch with as many open transactions as
partitions would hold back all of its cleanings until its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airflow_provider_acid.acid.sealing import RunKey
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.run.run_place import RunPlace
from airflow_provider_acid.compaction.work.batch import CompactionBatch
from airflow_provider_acid.compaction.work.worker import Worker
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app import driver_run as job
from airflow_provider_acid.metastore.queues import open_queue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.plan.result import CompactionResult
from tests.harness.compaction_chain import wait_until
from tests.harness.plain_job import run_plainly
from tests.integration.compaction_site import AcidTable, Site, due

PARTITIONS = ("p=1", "p=2", "p=3")


class Application:
    """Merges a partition when it is told to, and not before."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = job.DriverRun(Storages().open(run.location), run.key.secret)

    def has_plan(self, item: int) -> bool:
        return item in self._run.look().plans

    def merge(self, item: int) -> CompactionResult:
        result = run_plainly(self._run.plan(item))
        self._run.write_result(item, result)
        return result


class Batch:
    """A batch with a metastore connection of its own, as the operator has one.

    :param runs: an existing folder for the run directory; the tests' reader takes one in the table for a partition.
    """

    def __init__(self, table: AcidTable, runs: Path, max_active: int) -> None:
        self._runs = runs
        self._site = table.site
        self._run: RunDirectory | None = None
        items = [due(table.entity(partition)) for partition in PARTITIONS]
        self.batch = CompactionBatch(items, self._open_worker, self._make_run, max_active=max_active, poll_seconds=0.02)

    def application(self) -> Application:
        assert self.batch.wait_until_planned() is not None
        assert self._run is not None
        return Application(self._run)

    @contextmanager
    def _open_worker(self) -> Iterator[Worker]:
        server = self._site.server
        with AcidMetastoreClient([MetastoreAddress(server.host, server.port)], user="tester") as client:
            queue = open_queue(client, self._site.hive_database)
            yield Worker(
                client,
                queue,
                lambda entity, agent: CompactionTransaction(client, entity, agent_info=agent, heartbeat_seconds=60.0),
                self._site.settings,
                identity="task",
                host="here",
            )

    def _make_run(self, worker: Worker, first: ActiveCompaction) -> RunDirectory:
        self._run = RunDirectory(Storages(), RunPlace.in_directory(self._runs.as_uri()), RunKey.new("run"))
        return self._run


@contextmanager
def running(batch: Batch) -> Iterator[Application]:
    batch.batch.start()
    try:
        yield batch.application()
    except BaseException:
        batch.batch.stop()
        raise
    finally:
        batch.batch.application_ended()
        batch.batch.wait(60)


def due_table(site: Site) -> AcidTable:
    table = site.table("t", partitions=PARTITIONS)
    for partition in PARTITIONS:
        for value in range(3):
            table.insert(value, partition=partition)
    return table


def clean(table: AcidTable, partition: str) -> CleaningState:
    [cleaning] = table.site.clean(table.entity(partition))
    return cleaning.state


def test_the_first_partition_is_published_and_cleaned_while_the_batch_works_on_the_others(
    site: Site, tmp_path: Path
) -> None:
    table = due_table(site)
    before = table.rows()
    batch = Batch(table, tmp_path, max_active=1)
    with running(batch) as application:
        application.merge(0)
        wait_until(lambda: application.has_plan(1))
        assert [name[:5] for name in table.visible(PARTITIONS[0])] == ["base_", *["delta"] * 3]
        assert clean(table, PARTITIONS[0]) is CleaningState.CLEANED
        (base,) = table.directories(PARTITIONS[0])
        assert base.startswith("base_")
        assert table.rows() == before
        assert len([name for name in table.visible(PARTITIONS[1]) if name.startswith("delta_")]) == 3
        application.merge(1)
        wait_until(lambda: application.has_plan(2))
        application.merge(2)
        outcomes = batch.batch.join()
    assert [outcome.state for outcome in outcomes] == [OutcomeState.COMPACTED] * 3
    assert table.rows() == before
