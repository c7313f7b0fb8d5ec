"""One case of the crash matrix: die after a step, look, run again, compare with the undisturbed end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.publish.staging import STAGING_PREFIX
from airflow_provider_acid.compaction.recover.attempts import pool_of_txn
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.steps import Step, StepListener
from airflow_provider_acid.metastore.pools import owner_of
from airflow_provider_acid.metastore.values import TxnInfo, TxnState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.compaction_chain import MERGED, Chain, Compacted, run_until_killed, wait_until
from tests.harness.crash_record import CrashRecord, Successor, recorded
from tests.harness.held_snapshot import HeldSnapshot
from tests.harness.hive_engine_program import HIVE_4_ALPHA
from tests.harness.table_state import TableState

LOCK_WAIT_SECONDS = 10.0
ALIVE_SECONDS = 300.0
DEAD_AT_ONCE = 0.001

PAIR_STEPS = [step.value for step in Step]
"""Of a minor compaction that makes two directories."""

PAIR_STEPS.insert(PAIR_STEPS.index(Step.VERIFIED.value), MERGED)
ONLY_PAIR_STEPS = frozenset(
    step.value for step in (Step.EXCLUSIVE_LOCK_ASKED, Step.EXCLUSIVE_LOCK_HELD, Step.JOURNALLED, Step.FIRST_PUBLISHED)
)
STEPS = [step for step in PAIR_STEPS if step not in ONLY_PAIR_STEPS]
"""Of a compaction that makes one directory."""

ITS_END = ("published", "committed", "marked_compacted")
"""From the publication until it waits to be cleaned; on Hive 3 the last two are the other way round."""

AROUND_THE_PAIR = [step for step in PAIR_STEPS if step in {*ONLY_PAIR_STEPS, *ITS_END}]
"""The others are the same for one directory and for two."""

STEPS_WITH_REAPER = ("claimed", "transaction_opened", "recorded", *ITS_END, "files_deleted")
"""Every state of row and transaction that the metastore's reaper can find."""

OWNED_STEPS = tuple(STEPS[STEPS.index(Step.ENQUEUED.value) : STEPS.index(Step.COMMITTED.value)])
"""After these the queue of a Hive 4 shows an attempt that may be alive."""

CLEANING_STEPS = frozenset(STEPS[STEPS.index(Step.CLEANING_DECIDED.value) :])


class Kind(str, Enum):
    """What is compacted how."""

    MAJOR = "major"
    MINOR = "minor"
    """Of inserts and deletes, which makes two directories; on Hive 3 by ``minor_pairs_on_hive_3``."""

    MINOR_AS_MAJOR = "minor, done as a major"
    """What becomes of such a minor on Hive 3 by default."""

    @property
    def type(self) -> CompactionType:
        """What is asked for."""
        return CompactionType.MAJOR if self is Kind.MAJOR else CompactionType.MINOR

    @property
    def steps(self) -> list[str]:
        """What it can die after."""
        return PAIR_STEPS if self is Kind.MINOR else STEPS


@dataclass(frozen=True)
class CrashCase:
    """A table that has just been registered, what is done with it, and the step after which that dies.

    :param metastore: what the records call it.
    """

    state: TableState
    kind: Kind
    step: str
    metastore: str

    @property
    def chain(self) -> Chain:
        """The chain that compacts the table's partition."""
        return chain_for(self.state, self.kind)

    @property
    def owner(self) -> str:
        """Part of the names of all that its tries make."""
        return str(owner_of(self.chain.identity, str(self.state.entity)))

    @property
    def clock_has_whole_seconds(self) -> bool:
        """Whether Hive's times there are cut to seconds (3.1.3 on MariaDB), so that nothing is older than a moment."""
        return "MariaDB" in self.metastore

    @property
    def is_done(self) -> bool:
        """Whether the result was part of the table for good when the process died."""
        return self.step in STEPS[STEPS.index(Step.COMMITTED.value) :]

    @cached_property
    def undisturbed_result(self) -> list[str]:
        """What is left of the same table after compacting and cleaning it undisturbed."""
        table, entity = self.state.table.fixture, self.state.entity
        key = (self.state.server.uri, table.version, table.name, entity.partition, self.kind)
        if key not in _UNDISTURBED:
            state = self.state.another(f"undisturbed_{len(_UNDISTURBED)}")
            chain = chain_for(state, self.kind)
            assert chain.compact().outcome.state is OutcomeState.COMPACTED
            chain.clean()
            expected = ["delete_delta", "delta"] if self.kind is Kind.MINOR else ["base"]
            result = state.result()
            assert [name.partition("_0")[0] for name in result] == expected
            state.check_finished(result)
            _UNDISTURBED[key] = result
        return _UNDISTURBED[key]


_UNDISTURBED: dict[object, list[str]] = {}


def chain_for(state: TableState, kind: Kind = Kind.MAJOR) -> Chain:
    """The chain that compacts a table's partition."""
    settings = CompactionSettings(minor_lock_wait_seconds=LOCK_WAIT_SECONDS, minor_pairs_on_hive_3=kind is Kind.MINOR)
    return Chain.on(state.server, state.entity, settings=settings, type=kind.type)


def check_next_try(case: CrashCase, successor: Successor = Successor.NEXT_TRY) -> None:
    """The same task tried again, at once, finishes what its dead try began."""
    with _killed(case, successor) as (record, snapshot):
        _check_successor(case, case.chain.next_try(), record, snapshot)


def check_another_run(case: CrashCase) -> None:
    """Another run leaves the attempt alone while it may be alive, and finishes its work once it cannot be."""
    with _killed(case, Successor.ANOTHER_RUN) as (record, snapshot):
        if case.step in (*OWNED_STEPS, *ONLY_PAIR_STEPS):
            before = case.state.directories()
            outcome = case.chain.another_run().with_timeout(ALIVE_SECONDS).compact().outcome
            assert outcome.state is OutcomeState.SKIPPED, outcome
            assert outcome.request_id is not None
            assert case.state.directories() == before
        if case.clock_has_whole_seconds:
            time.sleep(1.1)
        _check_successor(case, case.chain.another_run().with_timeout(DEAD_AT_ONCE), record, snapshot)


def check_another_run_after_reaper(case: CrashCase, timeout_seconds: float) -> None:
    """The metastore aborts the dead transaction by itself; later runs of the DAG finish the work.

    From the moment at which it aborts a half-published minor until the next run, readers that ignore transactions see
    half of it: that is what no order of steps can prevent. On Hive 3 that is every reader.
    """
    state, heir = case.state, case.chain.another_run().with_timeout(timeout_seconds)
    with _killed(case, Successor.AFTER_REAPER, reads_on=False) as (record, _):
        wait_until(lambda: not [txn for txn in state.our_transactions() if txn.state is TxnState.OPEN])
        is_half = case.step == Step.FIRST_PUBLISHED.value
        assert state.is_right_without_lock() is not is_half
        done: list[Compacted] = []

        def is_finished() -> bool:
            done.append(heir.compact(_look_after_steps(case)))
            return done[-1].outcome.state is not OutcomeState.SKIPPED or case.is_done

        with state.watched(at_once=not is_half):
            wait_until(is_finished)
        _check_outcome(case, done[-1], record)
        state.check_rows()
        with state.watched():
            wait_until(lambda: all(item.state is CleaningState.CLEANED for item in heir.clean(_look_after_steps(case))))
        state.check_finished(case.undisturbed_result)


@contextmanager
def _killed(
    case: CrashCase, successor: Successor, *, reads_on: bool = True
) -> Iterator[tuple[CrashRecord, HeldSnapshot | None]]:
    """The process is dead; what it left is looked at.

    :param reads_on: whether a reader that began before, and so keeps the cleaner waiting, reads until the end; not
        where it is the cleaner that dies.
    """
    state = case.state
    record = CrashRecord(
        case.metastore,
        f"{state.table.fixture.version} {state.table.name}",
        case.kind.value,
        case.step,
        successor.value,
    )
    assert case.undisturbed_result
    inputs = state.visible_directories()
    with recorded(record):
        reads = reads_on and case.step not in CLEANING_STEPS
        snapshot = HeldSnapshot(state) if reads else None
        try:
            run_until_killed(case.chain, case.step)
            _check_scene(case)
            record.found = _scene(case, inputs)
            yield record, snapshot
        finally:
            if snapshot is not None:
                snapshot.close()


def _check_scene(case: CrashCase) -> None:
    state = case.state
    is_half = case.step == Step.FIRST_PUBLISHED.value
    may_be_reaped = not state.server.reaper or state.server.transaction_timeout_seconds >= ALIVE_SECONDS
    state.check_rows(locking=may_be_reaped or not is_half)
    assert state.is_right_without_lock() is not is_half, "what the EXCLUSIVE lock is for"
    if state.renames_publish:
        waiting, history = state.stored_states()
        assert waiting == _STORED_STATES.get(case.step, ["w"])
        assert history == (["s"] if case.step == Step.MARKED_CLEANED.value else [])


_STORED_STATES: dict[str, list[object]] = {
    Step.RECOVERED.value: [],
    Step.ENQUEUED.value: ["i"],
    Step.MARKED_CLEANED.value: [],
}
"""On Hive 3, after a death; after all other steps the row is 'working'."""


def _scene(case: CrashCase, inputs: set[str]) -> str:
    """What a successor finds, in words."""
    state = case.state
    rows = [row for row in state.queue_rows() if not row.state.is_terminal]
    now = state.visible_directories()
    facts = [f"request {rows[-1].state.value}" if rows else "no request"]
    mine = [txn.state.value for txn in state.our_transactions() if _owner(txn) == case.owner]
    facts += [f"transaction {words}" for words in mine]
    if any(name.startswith(STAGING_PREFIX) for name in state.directories()):
        facts.append("staging directory")
    if now - inputs:
        whole = 2 if case.kind is Kind.MINOR else 1
        facts.append("result renamed" if len(now - inputs) == whole else "half of the result renamed")
    if inputs - now:
        facts.append("merged directories deleted")
    return ", ".join(facts)


def _check_successor(case: CrashCase, heir: Chain, record: CrashRecord, snapshot: HeldSnapshot | None) -> None:
    state = case.state
    is_half = case.step == Step.FIRST_PUBLISHED.value
    inputs = state.visible_directories() if snapshot is None else snapshot.directories
    with state.watched(at_once=not is_half):
        _check_outcome(case, heir.compact(_look_after_steps(case)), record)
    state.check_rows()
    with state.watched():
        heir.clean(_look_after_steps(case))
        state.check_rows()
        if snapshot is not None:
            assert inputs <= state.visible_directories(), "deleted although a reader may need it"
            state.check_rows_of(snapshot.snapshot)
            snapshot.close()
        heir.clean(_look_after_steps(case))
    state.check_finished(case.undisturbed_result)


def _check_outcome(case: CrashCase, compacted: Compacted, record: CrashRecord) -> None:
    record.did = _deed(compacted)
    assert compacted.outcome.state is _expected(case), compacted.outcome


def _expected(case: CrashCase) -> OutcomeState:
    stays = case.state.renames_publish and case.step == Step.PUBLISHED.value
    if stays or case.step == Step.MARKED_CLEANED.value:
        return OutcomeState.NOTHING_TO_MERGE
    is_not_marked = case.step == Step.COMMITTED.value and not case.state.renames_publish
    if not case.is_done or is_not_marked:
        return OutcomeState.COMPACTED
    # Of the others none takes a request of a partition whose result waits to be cleaned.
    return OutcomeState.NOTHING_TO_MERGE if case.metastore.startswith(HIVE_4_ALPHA) else OutcomeState.SKIPPED


def _deed(compacted: Compacted) -> str:
    """What a successor did, in words."""
    outcome = compacted.outcome
    if outcome.state is not OutcomeState.COMPACTED:
        return _DEEDS.get(outcome.state, str(outcome.state.value))
    if not outcome.targets:
        return "made the committed result ready for cleaning"
    return "merged anew" if compacted.merged else "adopted the finished output"


_DEEDS = {
    OutcomeState.NOTHING_TO_MERGE: "found nothing to merge",
    OutcomeState.SKIPPED: "left the published result to the cleaner",
}


def _look_after_steps(case: CrashCase) -> StepListener:
    """On Hive 3 a row is 'working' for Hive until the files are deleted, and history after that."""

    def look(step: Step, entity: Entity) -> None:
        if case.state.renames_publish and step.value in CLEANING_STEPS:
            waiting, history = case.state.stored_states()
            is_cleaned = step is Step.MARKED_CLEANED
            assert (waiting, "s" in history) == (([] if is_cleaned else ["w"]), is_cleaned)

    return look


def _owner(txn: TxnInfo) -> str | None:
    pool = pool_of_txn(txn)
    return None if pool is None else pool.owner
