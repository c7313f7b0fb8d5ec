"""What one partition of a batch costs the metastore and the storage does not grow with the batch or the site's past."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.sealing import RunKey
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.run import dead_runs
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.run.run_place import RunPlace, run_name
from airflow_provider_acid.compaction.work import batch
from airflow_provider_acid.compaction.work.batch import BEGUN_TOGETHER
from airflow_provider_acid.compaction.work.worker import Worker
from airflow_provider_acid.filesystem import Storage, Storages
from airflow_provider_acid.metastore.hive3 import row_store
from airflow_provider_acid.metastore.hive3.queue import SqlCompactionQueue
from airflow_provider_acid.metastore.hive3.stored_rows import stored_rows
from airflow_provider_acid.metastore.pools import RequestPool, owner_of
from airflow_provider_acid.metastore.thrift import methods
from airflow_provider_acid.metastore.thrift.connection import MetastoreConnection
from airflow_provider_acid.metastore.thrift.wire import Method
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import FORMAT_VERSION, CompactionType
from airflow_provider_acid.storages.local import LocalStorage
from benchmarks.counted_calls import StorageCalls
from tests.harness.run_files import RunFiles
from tests.integration.compaction_site import ON_BOTH_METASTORES, ON_HIVE_3, AcidTable, Site
from tests.integration.played_batch import play

PAST = 20
"""Compactions of other partitions on record."""


class Costs:
    """Counts what the queue answers, and which files are read."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.read: list[str] = []

    def taken(self) -> tuple[list[int], list[str]]:
        taken = (self.answers, self.read)
        self.answers, self.read = [], []
        return taken


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> Costs:
    counted = Costs()
    invoke, rows, read = MetastoreConnection._invoke, stored_rows, LocalStorage.read

    def counting_invoke(self: MetastoreConnection, subject: str, method: Method, *others: Any, **more: Any) -> Any:
        answer = invoke(self, subject, method, *others, **more)
        if method is methods.SHOW_COMPACT:
            counted.answers.append(len(answer.compactions))
        return answer

    def counting_rows(*arguments: Any) -> Any:
        found = rows(*arguments)
        counted.answers.append(len(found))
        return found

    def counting_read(self: LocalStorage, path: str, *more: Any) -> bytes:
        counted.read.append(path)
        return read(self, path, *more)

    monkeypatch.setattr(MetastoreConnection, "_invoke", counting_invoke)
    monkeypatch.setattr(row_store, stored_rows.__name__, counting_rows)
    monkeypatch.setattr(LocalStorage, "read", counting_read)
    return counted


def dead_run(table: AcidTable, plans: int) -> Path:
    """The run directory of an operator that died: as many plans of attempts that nobody knows any more."""
    place = RunPlace.of(Storages(), None, str(table.folder()))
    made = RunDirectory(Storages(), place, RunKey.new(run_name(table.site.client.database_uuid())))
    run = Path(made.location.removeprefix("file:"))
    for item in range(plans):
        plan = {"format_version": FORMAT_VERSION, "attempt": f"{item:016x}"}
        RunFiles(run).put_plan(item, json.dumps(plan).encode())
    return run


@ON_BOTH_METASTORES
def test_a_batch_looks_for_dead_runs_once_and_reads_no_plan_of_its_own(site: Site, costs: Costs) -> None:
    """Seen: 15,509 plans were read for 200 partitions."""
    partitions = [f"p={number}" for number in range(4)]
    table = site.table(partitions=partitions)
    for partition in partitions:
        for value in range(2):
            table.insert(value, partition=partition)
    run = dead_run(table, plans=3)
    begun: list[str] = []
    found = play(site, [table.entity(name) for name in partitions], when_planned=lambda: begun.extend(costs.taken()[1]))
    assert not run.exists()
    assert len([path for path in begun if run.name in path]) == 1
    assert {outcome.state for outcome in found.values()} == {OutcomeState.COMPACTED}


@ON_HIVE_3
def test_of_many_hands_one_looks_for_dead_runs(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others would find the run of their own batch. Hive 3's site has a PostgreSQL, which serves many at once."""
    monkeypatch.setattr(batch, "BEGUN_TOGETHER", 1)
    hands: set[int] = set()
    second = threading.Event()
    looked: list[RunPlace] = []
    begin_together, listing = Worker.begin_together, dead_runs._listing

    def begin(self: Worker, due: Sequence[DuePartition]) -> list[ActiveCompaction | Outcome]:
        hands.add(threading.get_ident())
        if len(hands) > 1:
            second.set()
        assert due[0].entity.partition == "p=0" or second.wait(60)
        return begin_together(self, due)

    def look(storage: Storage, place: RunPlace) -> Listing:
        looked.append(place)
        return listing(storage, place)

    monkeypatch.setattr(Worker, "begin_together", begin)
    monkeypatch.setattr(dead_runs, "_listing", look)
    partitions = [f"p={number}" for number in range(12)]
    table = site.table(partitions=partitions)
    for partition in partitions:
        for value in range(2):
            table.insert(value, partition=partition)
    found = play(site, [table.entity(name) for name in partitions], max_active=12)
    assert {outcome.state for outcome in found.values()} == {OutcomeState.COMPACTED}
    assert len(hands) > 1
    assert len(looked) == 1


@ON_HIVE_3
def test_what_is_kept_for_an_undo_is_cleaned_once_for_all_that_are_begun_together(
    keeping: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Hive 3.1 its claim would stand in the way. Each cleaning looks at all that is kept, and waits a second."""
    monkeypatch.setattr(batch, "HANDS", 1)
    names = [f"p={number}" for number in range(6)]
    table = keeping.table(partitions=names)
    looks: list[int] = []
    ready_to_clean = SqlCompactionQueue.ready_to_clean

    def counted(queue: SqlCompactionQueue, entities: Iterable[Entity]) -> list[CompactionRow]:
        found = ready_to_clean(queue, entities)
        looks.append(len(found))
        return found

    for _ in range(2):
        for name in names:
            for value in range(2):
                table.insert(value, partition=name)
        looks.clear()
        monkeypatch.setattr(SqlCompactionQueue, "ready_to_clean", counted)
        found = play(keeping, [table.entity(name) for name in names], max_active=len(names))
        monkeypatch.setattr(SqlCompactionQueue, "ready_to_clean", ready_to_clean)
        assert {outcome.state for outcome in found.values()} == {OutcomeState.COMPACTED}
    assert looks == [1, len(names) - 1], "the first is begun alone"
    assert table.values() == sorted([0, 1] * 2 * len(names))


def test_a_partition_that_nobody_was_at_work_on_costs_15_calls_and_no_transaction_but_its_own(
    site: Site, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/performance.md lists them; the first partition is begun alone, all others together with others."""
    # Each further connection costs a few calls, however many partitions there are.
    monkeypatch.setattr(batch, "HANDS", 1)

    def calls_of(partitions: int) -> Counter[str]:
        names = [f"p={number}" for number in range(partitions)]
        table = site.table(f"t{partitions}", partitions=names)
        for name in names:
            for value in range(2):
                table.insert(value, partition=name)
        calls.clear()
        found = play(site, [table.entity(name) for name in names], max_active=partitions)
        assert {outcome.state for outcome in found.values()} == {OutcomeState.COMPACTED}
        return Counter(calls)

    group = calls_of(1 + 2 * BEGUN_TOGETHER)
    group.subtract(calls_of(1 + BEGUN_TOGETHER))
    assert group["open_txns"] == BEGUN_TOGETHER
    assert group["get_config_value"] == 0
    assert group.total() <= 15 * BEGUN_TOGETHER, group


def test_a_cleaning_costs_4_calls_and_of_the_storage_two_listings_and_one_call_for_each_change(
    site: Site, calls: Counter[str]
) -> None:
    """The first partition is also looked at for what aborted compactions left; what it shows tells of the others."""

    def calls_of(partitions: int) -> tuple[Counter[str], Counter[str]]:
        names = [f"p={number}" for number in range(partitions)]
        table = site.table(f"t{partitions}", partitions=names)
        for name in names:
            for value in range(2):
                table.insert(value, partition=name)
        play(site, [table.entity(name) for name in names])
        calls.clear()
        with StorageCalls.counted() as asked:
            cleanings = site.clean(*[table.entity(name) for name in names])
        assert {cleaning.state for cleaning in cleanings} == {CleaningState.CLEANED}
        return Counter(calls), asked.calls

    calls_of(1)  # asks besides what is asked once, whatever is cleaned: the server's settings
    (metastore, storage), few = calls_of(6), calls_of(2)
    metastore.subtract(few[0])
    storage.subtract(few[1])
    assert metastore.total() <= 4 * 4, metastore
    each = {"make_directory": 1, "list": 2, "move": 2, "flush": 1, "delete": 1}
    assert +storage == Counter({name: 4 * count for name, count in each.items()})


@ON_BOTH_METASTORES
def test_the_queues_answers_for_one_partition_do_not_grow_with_other_partitions_past(site: Site, costs: Costs) -> None:
    table = site.table(partitions=["p=a", "p=b"])
    for partition in ("p=a", "p=b"):
        for value in range(2):
            table.insert(value, partition=partition)

    def compact_and_clean(partition: str) -> list[int]:
        costs.taken()
        assert site.compact(table.entity(partition)).state is OutcomeState.COMPACTED
        site.look(table.entity(partition))
        site.clean(table.entity(partition))
        return costs.taken()[0]

    before = compact_and_clean("p=a")
    for number in range(PAST):
        other = Entity(site.database, "other", f"p={number}")
        pool = str(RequestPool.new(owner_of("other")))
        site.queue.enqueue(other, CompactionType.MAJOR, pool)
        claim = site.queue.claim(pool, f"{pool}@there")
        assert claim is not None
        site.queue.fail(claim, "for the history")
    assert len(site.queue.rows(state=CompactionState.FAILED)) >= PAST
    assert compact_and_clean("p=b") == before
