"""An evaluation lists in threads, and nobody can tell but by its speed."""

from __future__ import annotations

import threading
import tracemalloc
from collections import Counter
from itertools import groupby

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_3
from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.compaction.evaluate.looking import ITEMS_PER_THREAD, LISTED_AT_ONCE, Seen
from airflow_provider_acid.compaction.recover.recovered_partition import DIED
from airflow_provider_acid.exceptions import (
    StorageError,
)
from airflow_provider_acid.metastore.thrift.catalog import PARTITIONS_PER_CALL
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from airflow_provider_acid.plan.thresholds import CompactionDecision
from tests.unit.compaction.evaluated_tables import (
    METASTORE_ID,
    NEWEST,
    EvaluatedTables,
    FakeStorages,
    deltas,
    entity,
)
from tests.unit.compaction.test_looking import PATIENCE_SECONDS, TimeOut, wait_for

THREADS = 8
COMPACTED = b'{"thisFileVersion":"0","dataFormat":"compacted"}'
THRESHOLD = "compactorthreshold.hive.compactor.delta.num.threshold"
BASE = "base_0000002"
COMPACTED_BASE = Listing((FileEntry(f"{BASE}/_metadata_acid", 60), FileEntry(f"{BASE}/bucket_00000", 99)), (BASE,))


def number_of(location: str) -> int:
    return int(location.rpartition("=")[2])


def store_of_all_sorts(location: str) -> Listing:
    """Partitions that are due by more or less, that cannot be listed, and that hold a base or odd things."""
    number = number_of(location) if "=" in location else 3
    if number % 7 == 5:
        raise StorageError(location, "cannot be listed (permission denied)", "ask")
    if number % 7 == 6:
        return Listing((), ("delta_odd",))
    if number % 7 == 0:
        return COMPACTED_BASE
    return deltas(number % 7)


def tables_of_all_sorts() -> EvaluatedTables:
    storages = FakeStorages(listing=store_of_all_sorts, content=lambda location, path: COMPACTED)
    rows = [
        CompactionRow(1, entity("big", 3), "minor", CompactionState.FAILED),
        CompactionRow(2, entity("big", 3), "minor", CompactionState.FAILED),
        CompactionRow(3, entity("big", 10), "major", CompactionState.INITIATED),
        CompactionRow(4, entity("big", 45), "major", CompactionState.READY_FOR_CLEANING),
    ]
    return EvaluatedTables(
        {"big": 70, "odd": None, "plain": None, "tail": 9},
        storages,
        rows=rows,
        parameters={"odd": {THRESHOLD: "ten"}},
        hive=HIVE_3,
    )


def test_what_is_found_and_its_order_do_not_depend_on_the_number_of_threads() -> None:
    one_by_one = tables_of_all_sorts().evaluate(threads=1)
    at_once = tables_of_all_sorts().evaluate(threads=THREADS)
    assert at_once == one_by_one
    assert len(one_by_one.due) > 10
    assert {due.metastore_id for due in one_by_one.due} == {METASTORE_ID}
    assert len(one_by_one.evaluated) > 40
    reasons = "\n".join(one_by_one.skipped)
    for part in ("permission denied", "delta_odd", "the last 2 compactions failed", "waits to be cleaned", "'ten'"):
        assert part in reasons
    assert [found.entity for found in at_once.evaluated] == sorted(found.entity for found in at_once.evaluated)


def test_the_metastore_is_asked_in_batches_by_the_calling_thread_and_for_many_partitions_by_one_more() -> None:
    site = EvaluatedTables({"t": 1500, "u": None, "v": 1}, FakeStorages())
    found = site.evaluate(threads=THREADS)
    assert len(found.evaluated) == 1502
    assert site.client.threads == {threading.current_thread()}
    (fetching,) = site.client.others
    assert [thread.name for thread in fetching.threads] == ["fetching_0"]
    assert Counter(site.client.calls) == {
        **dict.fromkeys(["databases", "get_database", "tables", "open_transactions", "valid_write_ids"], 1),
        **dict.fromkeys(["config_value", "database_uuid"], 1),
        "get_table": 3,
        "get_partition_names": 2,
        "get_partitions": -(-1500 // PARTITIONS_PER_CALL) + 1,
    }
    one_by_one = EvaluatedTables({"t": 1500, "u": None, "v": 1}, FakeStorages())
    one_by_one.evaluate(threads=1)
    assert Counter(one_by_one.client.calls) == Counter(site.client.calls)
    # The warehouse is asked for once, by whichever partition is due first.
    in_order = [[call for call in found.client.calls if call != "config_value"] for found in (one_by_one, site)]
    assert in_order[0] == in_order[1]


@pytest.mark.parametrize("partitions", [10_000, 100_000])
def test_of_many_partitions_a_thousand_come_by_one_call_and_each_is_listed_once(partitions: int) -> None:
    listed: Counter[str] = Counter()
    inserts = deltas(3)

    def listing(location: str) -> Listing:
        listed[location] += 1
        return inserts

    site = EvaluatedTables({"t": partitions}, FakeStorages(listing=listing))
    assert len(site.evaluate(threads=1).evaluated) == partitions
    assert len(site.client.calls) <= partitions / 1000 + 10
    assert (len(listed), set(listed.values())) == (partitions, {1})


def test_whoever_leaves_early_does_not_wait_for_the_partitions_that_are_being_fetched() -> None:
    asked = threading.Event()

    def never_answer(name: str) -> None:
        if site.client.calls.count("get_partitions") == 2:
            asked.set()
            wait_for(site.client.others[0].interrupted)

    def time_out(location: str) -> Listing:
        wait_for(asked)
        raise TimeOut

    site = EvaluatedTables({"t": 2500}, FakeStorages(listing=time_out))
    site.client.on_call = never_answer
    with pytest.raises(TimeOut):
        site.evaluate(threads=1)
    assert site.client.others[0].interrupted.is_set()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("fetching")] == []


@pytest.mark.parametrize("threads", [1, THREADS])
def test_memory_does_not_grow_with_the_listings(threads: int) -> None:
    partitions, directory = 3000, "d" * 3000

    def listing(location: str) -> Listing:
        files = tuple(FileEntry(f"_{number}/{directory}", 1) for number in range(10))
        return Listing((*deltas(3).files, *files), deltas(3).directories)

    site = EvaluatedTables({"t": partitions}, FakeStorages(listing=listing))
    tracemalloc.start()
    try:
        assert len(site.evaluate(threads=threads).due) == partitions
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    listings_bytes = partitions * 10 * len(directory)
    assert most_bytes < listings_bytes / 4


def test_each_storage_is_opened_listed_and_read_by_one_thread_that_is_not_the_metastores() -> None:
    site = tables_of_all_sorts()
    site.evaluate(threads=THREADS)
    assert isinstance(site.settings.storages, FakeStorages)
    opened = site.settings.storages.opened
    assert Counter(storage.location for storage, _ in opened).most_common(1)[0][1] == 1
    for storage, opener in opened:
        assert storage.threads == {opener}
        assert opener.name.startswith("looking")


def test_partitions_are_listed_at_the_same_time_also_those_of_different_tables() -> None:
    meeting = threading.Barrier(THREADS)

    def meet(location: str) -> Listing:
        meeting.wait(PATIENCE_SECONDS)
        return deltas(3)

    site = EvaluatedTables(
        {"t": THREADS + 3, **{f"u{number}": None for number in range(THREADS - 3)}}, FakeStorages(listing=meet)
    )
    assert len(site.evaluate(threads=THREADS).due) == 2 * THREADS


def test_some_are_listed_in_a_row_before_what_follows_from_the_first_is_worked_out() -> None:
    steps: list[str] = []

    class Observer:
        def saw(self, seen: Seen, decision: CompactionDecision, hindrance: str | None) -> None:
            steps.append("judged")

        def passed_over(self, entity: Entity, reason: str) -> None:
            """Nothing is."""

    def list_one(location: str) -> Listing:
        steps.append("listed")
        return deltas(3)

    site = EvaluatedTables({"t": 2 * LISTED_AT_ONCE + 1}, FakeStorages(listing=list_one))
    site.observer = Observer()
    site.evaluate(threads=1)
    runs = [(step, len(list(some))) for step, some in groupby(steps)]
    assert [count for _, count in runs] == [LISTED_AT_ONCE] * 4 + [1, 1]


def test_of_ten_thousand_partitions_few_are_held_at_a_time() -> None:
    lock = threading.Lock()
    live = most = 0

    class CountedEntry(FileEntry):
        def __init__(self, path: str, size_bytes: int) -> None:
            nonlocal live, most
            super().__init__(path, size_bytes)
            with lock:
                live += 1
                most = max(most, live)

        def __del__(self) -> None:
            nonlocal live
            with lock:
                live -= 1

    site = EvaluatedTables({"t": 10_000}, FakeStorages(listing=lambda location: deltas(1, CountedEntry)))
    assert len(site.evaluate(threads=4).evaluated) == 10_000
    assert live == 0
    # Those that are listed before the first of them is handled are no longer under way.
    assert most <= 4 * ITEMS_PER_THREAD + LISTED_AT_ONCE


@pytest.mark.parametrize("parameters", [{}, {"t": {"transactional": "false"}}])
def test_a_pattern_is_matched_also_by_what_is_not_compacted(parameters: dict[str, dict[str, str]]) -> None:
    site = EvaluatedTables({"t": 3, "u": 3}, FakeStorages(), parameters=parameters)
    assert [str(pattern) for pattern in site.evaluate("d.t*", "d.u", "d.v*", "e.*").unmatched] == [
        "table pattern 'd.v*' matches no table",
        "table pattern 'e.*' matches no table",
    ]


def test_what_was_asked_for_or_failed_twice_or_waits_is_not_looked_at(caplog: pytest.LogCaptureFixture) -> None:
    rows = [
        CompactionRow(1, entity("t", 1), "minor", CompactionState.FAILED),
        CompactionRow(2, entity("t", 1), "minor", CompactionState.FAILED),
        CompactionRow(3, entity("t", 2), "major", CompactionState.INITIATED),
        CompactionRow(4, entity("t", 3), "major", CompactionState.READY_FOR_CLEANING),
    ]
    storages = FakeStorages()
    found = EvaluatedTables({"t": 5}, storages, rows=rows, hive=HIVE_3).evaluate()
    assert [item.entity for item in found.evaluated] == [entity("t", 0), entity("t", 4)]
    assert sorted(number_of(storage.location) for storage, _ in storages.opened) == [0, 4]
    assert caplog.records == []
    states = (CompactionState.FAILED, CompactionState.INITIATED, CompactionState.READY_FOR_CLEANING)
    assert found.queue.partitions_by_state == dict.fromkeys(states, 1)


WEEK_MS = 7 * 24 * 3600 * 1000


@pytest.mark.parametrize(
    ("ends_ms", "is_due"),
    [((1, 1), True), ((1, 2), False), ((2, 1), True), ((2, 2, 1), True), ((1, 1, 2), False), ((1, None), False)],
)
def test_a_partition_that_failed_twice_is_due_again_more_than_a_week_after_its_last_failure(
    ends_ms: tuple[int | None, ...], is_due: bool
) -> None:
    failed = CompactionState.FAILED
    rows = [CompactionRow(id, entity("t"), "major", failed, end_ms=end_ms) for id, end_ms in enumerate(ends_ms)]
    death = CompactionRow(9, entity("t"), "major", failed, end_ms=WEEK_MS, error_message=f"{DIED} in its sleep")
    site = EvaluatedTables({"t": None}, FakeStorages(), rows=[*rows, death])
    site.client.now_ms = WEEK_MS + 2
    found = site.evaluate()
    assert [due.entity for due in found.due] == [entity("t")] * is_due
    assert found.skipped == () if is_due else "; a week after the last it is tried again. Remedy: " in found.skipped[0]


def test_the_clock_is_read_once_where_many_failed_and_not_at_all_elsewhere() -> None:
    rows = [
        CompactionRow(id, entity("t", id % 5), "major", CompactionState.FAILED, start_ms=1, end_ms=1)
        for id in range(10)
    ]
    site = EvaluatedTables({"t": 5}, FakeStorages(), rows=rows)
    assert site.evaluate().due == ()
    assert site.client.calls.count("server_now_ms") == 1
    once = EvaluatedTables({"t": 5}, FakeStorages(), rows=rows[:5])
    assert len(once.evaluate().due) == 5
    assert "server_now_ms" not in once.client.calls


def test_what_an_open_compaction_wrote_is_not_part_of_the_table() -> None:
    def with_a_base_of_an_open_compaction(location: str) -> Listing:
        base = f"base_{NEWEST:07d}_v{NEWEST + 1:07d}"
        listing = deltas(3)
        return Listing((FileEntry(f"{base}/bucket_00000", 300), *listing.files), (base, *listing.directories))

    storages = FakeStorages(listing=with_a_base_of_an_open_compaction)
    (due,) = EvaluatedTables({"t": None}, storages).evaluate().due
    assert due.reason.startswith("major: 3 deltas > 2;")
    hive_3 = EvaluatedTables({"t": None}, storages, hive=HIVE_3).evaluate()
    assert hive_3.due == ()
    assert "which no reader of Hive 3 understands" in hive_3.skipped[0]


def test_a_compacted_base_is_known_by_what_it_says_of_itself() -> None:
    def with_a_base(location: str) -> Listing:
        listing = deltas(4)
        return Listing((*COMPACTED_BASE.files, *listing.files), (BASE, *listing.directories))

    storages = FakeStorages(listing=with_a_base, content=lambda location, path: COMPACTED)
    (evaluated,) = EvaluatedTables({"t": None}, storages, hive=HIVE_3).evaluate().evaluated
    assert (evaluated.decision.delta_count, evaluated.decision.delete_delta_count) == (2, 0)


@pytest.mark.parametrize(("parameters", "count"), [({}, 3), ({"transactional_properties": "insert_only"}, 2)])
def test_hive_3_merges_aborted_deltas_where_rows_have_ids_and_passes_over_others(
    parameters: dict[str, str], count: int
) -> None:
    site = EvaluatedTables({"t": None}, FakeStorages(), parameters={"t": parameters}, hive=HIVE_3)
    site.client.aborted = {"d.t": frozenset({2})}
    (evaluated,) = site.evaluate().evaluated
    assert evaluated.decision.delta_count == count


def test_a_partition_is_judged_by_its_own_format() -> None:
    site = EvaluatedTables({"t": 2}, FakeStorages())
    site.client.partition_format = "org.apache.hadoop.mapred.TextInputFormat"
    found = site.evaluate()
    assert found.due == ()
    assert ["TextInputFormat" in reason for reason in found.skipped] == [True, True]


def test_where_listings_take_no_waiting_there_are_no_threads() -> None:
    threads: set[threading.Thread] = set()

    def listing(location: str) -> Listing:
        threads.add(threading.current_thread())
        return deltas(3)

    site = EvaluatedTables({"t": 300}, FakeStorages(listing=listing))
    assert len(site.evaluate(threads=THREADS, patience_seconds=PATIENCE_SECONDS).due) == 300
    assert threads == {threading.current_thread()}
