"""Two metastores on one database: whichever dies, and whenever, the other goes on with what was begun at the first."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import DuePartition, OutcomeState
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.compaction.work.hands import Hand, Hands
from airflow_provider_acid.compaction.work.worker import Worker
from airflow_provider_acid.hooks.connected_batch import open_connected_worker
from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.metastore.access.access import MetastoreAccess
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress, Transport
from airflow_provider_acid.metastore.values import CompactionState, LockState, TxnState
from airflow_provider_acid.plan.plan import CompactionPlan, CompactionType
from airflow_provider_acid.plan.result import CompactionResult
from tests.crash.ending import finish, reap
from tests.crash.refusal import answers
from tests.harness import compaction_chain
from tests.harness.compaction_chain import Chain, Compacted, compact_with, wait_until
from tests.harness.every_case import every_case
from tests.harness.hive_engine_program import HIVE_4, engine_program, hive_4_metastore_program, later_metastore_program
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_server import MetastoreServer
from tests.harness.network_proxy import NetworkProxy
from tests.harness.plain_job import run_plainly
from tests.harness.ports import HOST, free_port
from tests.harness.postgres_server import PostgresServer
from tests.harness.table_state import TableState
from tests.harness.the_hive_4 import THE_HIVE_4

MERGING = "merging"
"""Not a step that ends: rows are merged, and nobody but the heartbeat talks to a metastore."""

SHOWN: Mapping[str, list[CompactionState]] = {
    Step.RECOVERED: [],
    Step.ENQUEUED: [CompactionState.INITIATED],
    **dict.fromkeys(list(Step)[list(Step).index(Step.MARKED_COMPACTED) :], [CompactionState.READY_FOR_CLEANING]),
    Step.MARKED_CLEANED: [CompactionState.SUCCEEDED],
}
"""What SHOW COMPACTIONS says after a step; after all others that somebody works on it."""

NOT_REPEATABLE: Mapping[str, int] = {
    "compact2": 1,
    "find_next_compact2": 1,
    "open_txns": 2,
    "lock": 2,
    "update_compactor_state": 1,
    "mark_compacted": 1,
    "commit_txn": 2,
    "mark_cleaned": 1,
}
"""Calls that do something anew each time they are made, and how often it takes them to compact and clean."""

SETTLED = {
    *((call, "answer") for call in ("compact2", "find_next_compact2", "update_compactor_state", "mark_compacted")),
    *(("commit_txn", "request"), ("commit_txn", "answer"), ("mark_cleaned", "answer")),
}
"""What a look at the queue, or at the transaction, shows to have been done; a commit may then be sent again."""

OUTAGE_SECONDS = 30.0 if every_case() else 1.5
"""The first is what a fail-over of a database takes."""

_DATABASES = itertools.count(1)


@dataclass(frozen=True)
class ChainOnBoth(Chain):
    """A chain whose connection names another metastore of the same database after the first."""

    other: MetastoreAddress = field(kw_only=True)

    def client(self) -> AcidMetastoreClient:
        return AcidMetastoreClient([MetastoreAddress(self.host, self.port), self.other], timeout_seconds=60)


class Pair:
    """Two metastores of one database.

    :ivar first: the one that connections prefer.
    :ivar second: the one that takes over, and that tells what is true.
    """

    def __init__(self, postgres: PostgresServer, first: MetastoreServer, second: MetastoreServer) -> None:
        self.postgres = postgres
        self.first = first
        self.second = second
        self._starts = ThreadPoolExecutor(1)
        self._coming: Future[None] | None = None

    def table(self, name: str = "acid_abort", partition: str | None = None) -> TableState:
        """A new table with inserts and deletes, and where nothing else is asked for with aborted writes."""
        return TableState.of(self.first, name, f"failover_{next(_DATABASES)}", partition)

    def chain(self, state: TableState, proxy: NetworkProxy | None = None) -> Chain:
        """The chain of a table.

        :param proxy: stands before the first.
        """
        first, other = proxy or self.first, MetastoreAddress(self.second.host, self.second.port)
        url = self.first.database_url
        return ChainOnBoth(first.host, first.port, state.entity, "dag/run/task", database_url=url, other=other)

    def kill(self) -> None:
        """The first dies by SIGKILL, when both run."""
        self.wait()
        self.first.kill()

    def wait(self) -> None:
        """Until both run."""
        if self._coming is not None:
            self._coming.result()
            self._coming = None

    def exchange(self) -> None:
        """After a death the survivor becomes the first, and the dead one is started anew in the meantime."""
        if self.first.pid is None:
            self.first, self.second = self.second, self.first
            self._coming = self._starts.submit(self.second.start)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Each with Hive's own threads on."""
    folder = tmp_path_factory.mktemp("pair")
    later = THE_HIVE_4 != HIVE_4
    program = later_metastore_program(engine_program(THE_HIVE_4, folder)) if later else hive_4_metastore_program()
    with ExitStack() as stack:
        postgres = stack.enter_context(PostgresServer())
        database = ServerDatabase(postgres, "pair")
        one, other = (
            stack.enter_context(
                MetastoreServer(
                    folder / name,
                    reaper=True,
                    own_initiator=True,
                    own_cleaner=True,
                    program=program,
                    database=database,
                    warehouse_uri=f"file:{folder / 'warehouse'}",
                )
            )
            for name in ("one", "other")
        )
        pair = Pair(postgres, one, other)
        yield pair
        pair.wait()


@pytest.fixture
def pair(both: Pair) -> Iterator[Pair]:
    """The first one runs; the second one, too, or is coming."""
    yield both
    both.exchange()


class Watch:
    """Kills the first metastore after a step; looks after every step, from then on through the second one."""

    def __init__(self, pair: Pair, state: TableState, deadly: str) -> None:
        self._pair = pair
        self._state = state
        self._deadly = deadly
        self._owners: set[object] = set()

    def __call__(self, step: str, _: Entity) -> None:
        if step == self._deadly:
            self._look(step)
            self._kill()
        if self._pair.first.pid is None:
            self._look(step)

    def _kill(self) -> None:
        """The open transaction, where there is one, is kept alive at the second."""
        self._pair.kill()
        self._state = replace(self._state, server=self._pair.second)
        begun = self._heartbeats()
        wait_until(lambda: all(now > begun[txn_id] for txn_id, now in self._heartbeats().items()))
        assert begun.keys() == self._heartbeats().keys()

    def _heartbeats(self) -> Mapping[int, int]:
        txns = [txn for txn in self._state.our_transactions() if txn.state is TxnState.OPEN]
        return {txn.id: txn.last_heartbeat_ms or 0 for txn in txns}

    def _look(self, step: str) -> None:
        self._state.check_rows_without_lock()
        rows = self._state.queue_rows()
        assert [row.state for row in rows] == SHOWN.get(step, [CompactionState.WORKING])
        with self._pair.chain(self._state).client() as client:
            locks = client.show_locks(self._state.entity)
        if rows and rows[0].state is CompactionState.WORKING and locks:
            (lock,) = locks
            assert lock.state is LockState.ACQUIRED
            self._owners.add((rows[0].worker_id, lock.lock_id, lock.txn_id))
            assert len(self._owners) == 1, "claim and lock are the ones that the first metastore gave"


@pytest.mark.parametrize(
    "step",
    [
        *(Step.ENQUEUED, Step.CLAIMED, Step.TRANSACTION_OPENED, MERGING, Step.FENCED, Step.PUBLISHED),
        *(Step.COMMITTED, Step.MARKED_COMPACTED, Step.CLEANING_DECIDED, Step.FILES_DELETED),
    ],
)
def test_the_other_metastore_goes_on_with_what_was_begun_at_one_that_was_killed(
    pair: Pair, step: str, calls: Counter[str]
) -> None:
    state = pair.table()
    chain, watch = pair.chain(state), Watch(pair, state, step)

    def job(plan: CompactionPlan) -> CompactionResult:
        watch(MERGING, state.entity)
        return run_plainly(plan)

    compacted = chain.compact(watch, job).outcome
    assert compacted.state is OutcomeState.COMPACTED, compacted
    (cleaning,) = chain.clean(watch)
    assert cleaning.state is CleaningState.CLEANED, cleaning
    assert pair.first.pid is None
    assert {call: calls[call] for call in NOT_REPEATABLE} == NOT_REPEATABLE, "nothing was done twice"
    replace(state, server=pair.second).check_finished(["base_0000005"])


@pytest.mark.parametrize("lost", ["request", "answer"])
@pytest.mark.parametrize("call", NOT_REPEATABLE)
def test_a_call_that_a_death_cuts_off_is_settled_at_the_other_metastore_or_fails_and_is_not_just_repeated(
    pair: Pair, call: str, lost: str, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing else shall be on the way when the call is made.
    monkeypatch.setattr(compaction_chain, "HEARTBEAT_SECONDS", 60.0)
    pair.wait()
    state = pair.table("acid_part", "p=x/q=1")
    word = len(call).to_bytes(4, "big") + call.encode()
    with NetworkProxy(pair.first.host, pair.first.port) as proxy:
        proxy.refuses_after_loss = True
        if lost == "answer":
            proxy.lose_answer_to(word)
        else:
            proxy.lose_request(word)
        chain = pair.chain(state, proxy)
        outcome = chain.compact().outcome
        state.check_rows()
        cleanings = chain.clean()
        assert proxy.is_done
    if (call, lost) in SETTLED:
        assert outcome.state is OutcomeState.COMPACTED, outcome
        assert [cleaning.state for cleaning in cleanings] == [CleaningState.CLEANED]
    else:
        told = cleanings[0].message if call == "mark_cleaned" else outcome.message
        assert "whether the metastore carried the call out is unknown" in told
    # What is committed and was not marked is marked by the cleaner, once its look at the request told that.
    made_again = call == "commit_txn" or (call, lost) == ("mark_compacted", "request")
    assert calls[call] == (NOT_REPEATABLE[call] + 1 if made_again else 1)
    reap(state)
    finish(state)


def stop(postgres: PostgresServer) -> Callable[[], None]:
    """Everybody is thrown out, nobody gets in; what ends that."""
    postgres.stop()
    return postgres.start


def freeze(postgres: PostgresServer) -> Callable[[], None]:
    """Nobody gets an answer, connections stand; what ends that."""
    leader = postgres.pid
    assert leader is not None
    children = Path(f"/proc/{leader}/task/{leader}/children").read_text()
    processes = [leader, *map(int, children.split())]

    def signal_all(how: signal.Signals) -> None:
        for process in processes:
            os.kill(process, how)

    signal_all(signal.SIGSTOP)
    return lambda: signal_all(signal.SIGCONT)


@pytest.mark.parametrize(
    ("begin_outage", "step"),
    [
        *((stop, step) for step in (Step.ENQUEUED, MERGING, Step.PUBLISHED, Step.COMMITTED, Step.FILES_DELETED)),
        (freeze, Step.PUBLISHED),
    ],
)
def test_a_database_that_goes_away_for_a_while_is_waited_for_or_the_next_try_ends_what_was_begun(
    pair: Pair, begin_outage: Callable[[PostgresServer], Callable[[], None]], step: str
) -> None:
    pair.wait()
    state = pair.table()
    ends: list[threading.Timer] = []

    def go_away() -> None:
        ends.append(threading.Timer(OUTAGE_SECONDS, begin_outage(pair.postgres)))
        ends[0].start()

    def on_step(passed: Step, _: Entity) -> None:
        if passed == step and not ends:
            go_away()

    def job(plan: CompactionPlan) -> CompactionResult:
        if step == MERGING:
            go_away()
            ends[0].join()
        return run_plainly(plan)

    chain = pair.chain(state)
    outcome = chain.compact(on_step, job).outcome
    cleanings = () if outcome.state.is_failure else chain.clean(on_step)
    ends[0].join()
    if outcome.state.is_failure:
        assert begin_outage is stop, "an answer that comes late is waited for"
        assert "Remedy: " in outcome.message
    else:
        assert [cleaning.state for cleaning in cleanings] == [CleaningState.CLEANED]
    wait_until(lambda: answers(state))
    state.check_rows()
    reap(state)
    finish(state)


def test_a_first_metastore_that_is_dead_from_the_start_costs_one_attempt_whoever_connects(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, alive = MetastoreAddress(HOST, free_port()), MetastoreAddress(pair.first.host, pair.first.port)
    endpoint = MetastoreEndpoint((dead, alive), 20, "tester", make_url(pair.first.server_database.url))
    attempts: Counter[MetastoreAddress] = Counter()
    connect = MetastoreAccess.connect

    def counted(self: MetastoreAccess, address: MetastoreAddress, timeout_seconds: float) -> Transport:
        attempts[address] += 1
        return connect(self, address, timeout_seconds)

    monkeypatch.setattr(MetastoreAccess, "connect", counted)
    states = [pair.table() for _ in range(3)]
    settings, all_merge = CompactionSettings(heartbeat_seconds=0.2), threading.Barrier(len(states))

    def compact(worker: Worker, state: TableState) -> Compacted:
        return compact_with(worker, DuePartition(state.entity, CompactionType.MAJOR, "test"), job)

    def job(plan: CompactionPlan) -> CompactionResult:
        all_merge.wait(60)
        wait_until(lambda: attempts[alive] >= 2 * len(states))
        return run_plainly(plan)

    def free_hand() -> Hand:
        wait_until(lambda: hands.idle() is not None)
        hand = hands.idle()
        assert hand is not None
        return hand

    with Hands(lambda: open_connected_worker(endpoint, settings, "dag/run/task"), len(states), lambda: None) as hands:
        done = [free_hand().ask(partial(compact, state=state)) for state in states]
        assert [compacted.result().outcome.state for compacted in done] == [OutcomeState.COMPACTED] * len(states)
    assert attempts == {dead: 1, alive: 2 * len(states)}
