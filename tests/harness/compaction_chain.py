"""One partition's whole chain, compact and clean, in this process or in one that dies on the way.

The merge runs in plain Python, so that a chain takes a second; everything else is the real worker, cleaner and
metastore.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.active import Waiting
from airflow_provider_acid.compaction.clean.cleaner import Cleaner
from airflow_provider_acid.compaction.clean.cleaning import Cleaning
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.steps import Step, StepListener, ignore_steps
from airflow_provider_acid.compaction.work.finishing import Finished
from airflow_provider_acid.compaction.work.worker import Worker
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.queues import open_queue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress, PlainTransportFactory, TransportFactory
from airflow_provider_acid.metastore.transaction import CompactionTransaction
from airflow_provider_acid.plan.exchange import RESULT_FILE
from airflow_provider_acid.plan.plan import CompactionPlan, CompactionType
from airflow_provider_acid.plan.result import CompactionResult
from tests.harness.metastore_server import MetastoreServer
from tests.harness.plain_job import run_plainly

PATIENCE_SECONDS = 180
HEARTBEAT_SECONDS = 0.5
"""Often, so that on a busy machine nobody is taken for dead by metastores that wait for a few seconds only."""

MERGED = "merged"
"""Pseudo step between ``staged`` and ``verified``: all files are in place, the staging directory is not sealed."""

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])

Job = Callable[[CompactionPlan], CompactionResult]


@dataclass(frozen=True)
class Compacted:
    """How the compacting half of a chain ended.

    :param merged: whether rows were merged, and not a dead attempt's output adopted.
    """

    outcome: Outcome
    merged: bool


def compact_with(worker: Worker, due: DuePartition, job: Job = run_plainly) -> Compacted:
    """Begin, merge, finish; wait for the lock and begin anew where that is what comes of it."""
    begun = worker.begin(due)
    if isinstance(begun, Outcome):
        return Compacted(begun, merged=False)
    merged = begun.adopted is None
    finished = worker.finish(begun, begun.adopted or job(begun.plan))
    while isinstance(finished, Waiting):
        time.sleep(0.02)
        finished = worker.resume(finished)
    return Compacted(finished, merged) if isinstance(finished, Outcome) else compact_with(worker, finished, job)


def outcome_of(finished: Finished) -> Outcome:
    """Of what needs no lock."""
    assert isinstance(finished, Outcome), finished
    return finished


@dataclass(frozen=True)
class Chain:
    """Compacting and cleaning one partition in the name of one task.

    :param host: of the metastore, or of a proxy before it.
    :param identity: of the task; the same in each of its tries.
    :param request_id: somebody else's request that is to be served.
    :param type: what is asked for.
    :param database_url: SQLAlchemy URL of the metastore's database; None for Derby, which nobody else can open.
    :param access: opens connections to the metastore.
    """

    host: str
    port: int
    entity: Entity
    identity: str
    settings: CompactionSettings = CompactionSettings()
    request_id: int | None = None
    type: CompactionType = CompactionType.MAJOR
    database_url: str | None = None
    access: TransportFactory = PlainTransportFactory()

    @classmethod
    def on(
        cls,
        server: MetastoreServer,
        entity: Entity,
        identity: str = "dag/run/task",
        settings: CompactionSettings | None = None,
        type: CompactionType = CompactionType.MAJOR,
    ) -> Chain:
        """The chain of a partition in one of the tests' own metastores."""
        settings = settings or CompactionSettings()
        url, access = server.database_url, server.protection.access
        return cls(server.host, server.port, entity, identity, settings, type=type, database_url=url, access=access)

    def next_try(self) -> Chain:
        """The same task again."""
        return self

    def another_run(self) -> Chain:
        """A later run of the DAG."""
        return replace(self, identity=f"{self.identity}, next run")

    def with_timeout(self, seconds: float | None) -> Chain:
        """Takes transactions for dead after so long a silence."""
        return replace(self, settings=replace(self.settings, transaction_timeout_seconds=seconds))

    def client(self) -> AcidMetastoreClient:
        """A client of the chain's metastore."""
        address = MetastoreAddress(self.host, self.port)
        return AcidMetastoreClient([address], timeout_seconds=20, transport_factory=self.access)

    def queue(self, client: AcidMetastoreClient) -> CompactionQueue:
        """The metastore's compaction queue."""
        return open_queue(client, None if self.database_url is None else _database(self.database_url))

    def compact(self, on_step: StepListener = ignore_steps, job: Job | None = None) -> Compacted:
        """What the operator does about one partition; the merge in plain Python where nothing else is given."""
        with self.client() as client:
            due = DuePartition(self.entity, self.type, "crash test", self.request_id)
            return compact_with(self._worker(client, on_step), due, job or self.merge)

    def merge(self, plan: CompactionPlan) -> CompactionResult:
        """The merge in plain Python, on the site's storages."""
        return run_plainly(plan, self.settings.storages)

    def clean(self, on_step: StepListener = ignore_steps) -> tuple[Cleaning, ...]:
        """What the cleaning operator does once about one partition."""
        with self.client() as client:
            cleaner = Cleaner(client, self.queue(client), self.settings, on_step=on_step, sleep=_do_not_sleep)
            return cleaner.clean([self.entity])

    def _worker(self, client: AcidMetastoreClient, on_step: StepListener) -> Worker:
        def transaction(entity: Entity, agent_info: str) -> CompactionTransaction:
            return CompactionTransaction(
                client, entity, heartbeat_seconds=HEARTBEAT_SECONDS, agent_info=agent_info, lock_wait_seconds=10
            )

        queue = self.queue(client)
        return Worker(
            client, queue, transaction, self.settings, identity=self.identity, host="crash-test", on_step=on_step
        )


class ChainProcess:
    """A chain in a process of its own that signals itself right after a step.

    :param step: a :class:`Step`'s value, or :data:`MERGED`.
    :param how: SIGKILL to die there, SIGSTOP to fall asleep.
    """

    def __init__(self, chain: Chain, step: str, how: signal.Signals) -> None:
        self._receiver, sender = _FORKS.Pipe(duplex=False)
        self._process = _FORKS.Process(target=_run_chain, args=(chain, step, how, sender), daemon=True)
        self._process.start()
        sender.close()

    def wait_until_killed(self) -> None:
        """Waits for the end by SIGKILL."""
        self._process.join(PATIENCE_SECONDS)
        assert self._process.exitcode == -signal.SIGKILL, f"the process was not killed: {self._process.exitcode}"

    def wait_until_asleep(self) -> None:
        """Waits until the whole process is stopped."""
        stat = Path(f"/proc/{self._process.pid}/stat")
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")

    def wake(self) -> Outcome:
        """Lets a sleeping process go on; what came of its compaction."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGCONT)
        return self.outcome()

    def outcome(self) -> Outcome:
        """What came of the compaction of a process that nothing stops; waits until it has cleaned, too."""
        assert self._receiver.poll(PATIENCE_SECONDS), "the process said nothing"
        outcome: Outcome = self._receiver.recv()
        self._process.join(PATIENCE_SECONDS)
        return outcome

    def close(self) -> None:
        """Kills the process where it still lives."""
        self._process.kill()
        self._process.join(PATIENCE_SECONDS)


def run_until_killed(chain: Chain, step: str) -> None:
    """Runs a chain that is killed right after ``step``."""
    with closing(ChainProcess(chain, step, signal.SIGKILL)) as process:
        process.wait_until_killed()


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Polls a condition.

    :raises AssertionError: it does not come true in good time.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def _run_chain(chain: Chain, step: str, how: signal.Signals, sender: Connection) -> None:
    def on_step(passed: Step, _: Entity) -> None:
        if passed.value == step:
            os.kill(os.getpid(), how)

    def job(plan: CompactionPlan) -> CompactionResult:
        result = chain.merge(plan)
        if step == MERGED:
            chain.settings.storages.open(plan.location).delete([f"{plan.staging}/{RESULT_FILE}"])
            os.kill(os.getpid(), how)
        return result

    sender.send(chain.compact(on_step, job).outcome)
    chain.clean(on_step)


@lru_cache
def _database(url: str) -> MetastoreDatabase:
    """One for all chains of a process: looking up the names of tables and columns takes time."""
    return MetastoreDatabase(url)


def _do_not_sleep(seconds: float) -> None:
    """No transaction is being opened while these cleaners look."""
