"""What an evaluation does about errors: of one partition, of one table, of the metastore."""

from __future__ import annotations

import threading

import pytest

from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.compaction.evaluate.failures import MOST_FAILED_TABLES
from airflow_provider_acid.compaction.evaluate.initiator import Evaluation
from airflow_provider_acid.exceptions import (
    ConfigurationError,
    MetastoreError,
    MetastoreUnavailableError,
    MetastoreVersionError,
    ObjectNotFoundError,
    StorageError,
)
from airflow_provider_acid.metastore.thrift.catalog import PARTITIONS_PER_CALL
from tests.unit.compaction.evaluated_tables import (
    WAREHOUSE,
    EvaluatedTables,
    FakeStorages,
    deltas,
    dropped,
    entity,
)
from tests.unit.compaction.test_initiator import THRESHOLD, number_of
from tests.unit.compaction.test_looking import PATIENCE_SECONDS, TimeOut, looking_threads


def fail_together(failing: range) -> FakeStorages:
    meeting = threading.Barrier(len(failing))

    def fail(location: str) -> Listing:
        if number_of(location) in failing:
            meeting.wait(PATIENCE_SECONDS)
            raise StorageError(location, "cannot be listed", "look at it")
        return deltas(3)

    return FakeStorages(listing=fail)


@pytest.mark.parametrize("include", ["d.*", "d.t"])
def test_partitions_that_cannot_be_listed_are_skipped_though_several_fail_at_once(
    include: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = EvaluatedTables({"t": 20}, fail_together(range(3, 7))).evaluate(include, threads=4)
    assert found.skipped == tuple(
        f"{WAREHOUSE}/t/p={number:05d}: cannot be listed. Remedy: look at it." for number in range(3, 7)
    )
    assert len(found.due) == 16
    assert [record.getMessage() for record in caplog.records] == [
        f"{entity('t', number)}: not evaluated: {reason}"
        for number, reason in zip(range(3, 7), found.skipped, strict=True)
    ]


def evaluate_with_an_error_at_the_second_batch(error: BaseException, *include: str) -> Evaluation:
    site = EvaluatedTables({"t": PARTITIONS_PER_CALL + 5, "u": 2}, FakeStorages())

    def fail(name: str) -> None:
        if site.client.calls.count("get_partitions") == 2 and name == "get_partitions":
            raise error

    site.client.on_call = fail
    return site.evaluate(*include)


@pytest.mark.parametrize("error", [MetastoreUnavailableError("metastore", "is gone", "start it"), TimeOut()])
def test_an_error_of_the_metastore_ends_the_evaluation_and_its_threads(error: BaseException) -> None:
    with pytest.raises(type(error)):
        evaluate_with_an_error_at_the_second_batch(error)
    assert looking_threads() == []


def test_a_table_dropped_meanwhile_is_skipped_unless_it_is_named() -> None:
    found = evaluate_with_an_error_at_the_second_batch(dropped("table d.t"))
    assert found.skipped == (str(dropped("table d.t")),)
    assert len(found.evaluated) == PARTITIONS_PER_CALL + 2
    with pytest.raises(ObjectNotFoundError, match=r"table d\.t"):
        evaluate_with_an_error_at_the_second_batch(dropped("table d.t"), "d.t", "d.u")
    assert looking_threads() == []


def test_a_table_dropped_since_it_was_listed_keeps_no_other_from_being_evaluated() -> None:
    site = EvaluatedTables({"a": 2, "temporary": None, "z": 2}, FakeStorages())

    def drop(name: str) -> None:
        if name == "get_table" and site.client.calls.count(name) == 2:
            raise dropped("table d.temporary")

    site.client.on_call = drop
    found = site.evaluate()
    assert len(found.evaluated) == 4
    assert (found.skipped, found.refused) == ((str(dropped("table d.temporary")),), ())
    site.client.calls.clear()
    with pytest.raises(ObjectNotFoundError, match=r"table d\.temporary"):
        site.evaluate("d.*", "d.temporary")


@pytest.mark.parametrize("call", ["get_database", "tables"])
def test_a_database_dropped_since_it_was_listed_is_skipped_unless_a_table_of_it_is_named(call: str) -> None:
    site = EvaluatedTables({"t": 2}, FakeStorages())

    def drop(name: str) -> None:
        if name == call:
            raise dropped("database d")

    site.client.on_call = drop
    assert site.evaluate("*.*").skipped == (str(dropped("database d")),)
    with pytest.raises(ObjectNotFoundError, match=r"table d\.t"):
        site.evaluate("d.t")


@pytest.mark.parametrize("partitions", [5, PARTITIONS_PER_CALL + 5])
def test_partitions_dropped_while_others_are_fetched_are_left_out_also_of_a_named_table(partitions: int) -> None:
    site = EvaluatedTables({"t": partitions}, FakeStorages())
    fetches: list[int] = []

    def drop_two(name: str) -> None:
        if name == "get_partitions":
            fetches.append(len(site.client.calls))
            if len(fetches) == -(-partitions // PARTITIONS_PER_CALL):
                for client in (site.client, *site.client.others):
                    client.partitions = {"t": partitions - 2}
                raise dropped(f"partition p={partitions - 1:05d} of table d.t")

    site.client.on_call = drop_two
    found = site.evaluate("d.t")
    assert [item.entity for item in found.evaluated] == [entity("t", number) for number in range(partitions - 2)]
    assert (found.skipped, found.refused) == ((), ())


def with_an_aborted_write(error: BaseException, storages: FakeStorages | None = None) -> EvaluatedTables:
    """Its age is asked for when the first result of a partition that holds it is handled, and that fails."""
    site = EvaluatedTables({"t": 200}, FakeStorages() if storages is None else storages)
    site.client.aborted = {"d.t": frozenset({2})}

    def fail(name: str) -> None:
        if name == "transactions":
            raise error

    site.client.on_call = fail
    return site


def test_a_time_out_while_a_result_is_handled_leaves_no_thread() -> None:
    with pytest.raises(TimeOut) as caught:
        with_an_aborted_write(TimeOut()).evaluate()
    # Whoever keeps the error keeps the frames, and with them all that is not closed.
    assert caught.tb is not None
    assert looking_threads() == []


def test_a_metastore_that_is_gone_while_a_result_is_handled_is_no_reason_to_skip() -> None:
    with pytest.raises(MetastoreUnavailableError):
        with_an_aborted_write(MetastoreUnavailableError("metastore", "is gone", "start it")).evaluate()
    assert looking_threads() == []


def test_a_table_whose_figures_cannot_be_had_is_skipped_unless_it_is_named() -> None:
    error = dropped("table d.t")
    assert set(with_an_aborted_write(error).evaluate().skipped) == {str(error)}
    with pytest.raises(ObjectNotFoundError):
        with_an_aborted_write(error).evaluate("d.t")


def test_a_table_with_a_threshold_that_is_no_number_is_skipped_unless_it_is_named() -> None:
    site = EvaluatedTables({"t": 3, "u": 3}, FakeStorages(), parameters={"t": {THRESHOLD: "ten"}})
    found = site.evaluate()
    assert [item.entity.table for item in found.due] == ["u"] * 3
    assert len(found.skipped) == 1
    with pytest.raises(ConfigurationError, match="is not a whole number"):
        site.evaluate("d.t")


def test_what_a_worker_would_refuse_after_its_claim_is_not_asked_for_in_every_run_anew() -> None:
    site = EvaluatedTables({"t": 2, "u": 2, "v": None}, FakeStorages(), parameters={"u": {"no_cleanup": "true"}})
    site.client.parameters = {**site.client.parameters, "v": {"NO_CLEANUP": "TRUE"}}
    found = site.evaluate("d.*")
    assert [due.entity for due in found.due] == [entity("t", 0), entity("t", 1)]
    assert len(found.evaluated) == 5
    assert ["has no_cleanup=true" in reason for reason in found.refused] == [True] * 3


@pytest.mark.parametrize("error", [ZeroDivisionError("no"), KeyError("type 5"), RecursionError("deep"), MemoryError()])
def test_what_nobody_foresaw_is_refused_at_its_partition_with_its_traceback_and_the_others_are_evaluated(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(location: str) -> Listing:
        if number_of(location) == 7:
            raise error
        return deltas(3)

    found = EvaluatedTables({"t": 50}, FakeStorages(listing=fail)).evaluate()
    assert [item.entity for item in found.evaluated] == [entity("t", number) for number in range(50) if number != 7]
    assert [type(error).__name__ in reason for reason in found.refused] == [True]
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [error]
    assert looking_threads() == []


@pytest.mark.parametrize("call", ["get_table", "get_partition_names", "get_partitions"])
def test_what_nobody_foresaw_of_one_table_keeps_no_other_from_being_evaluated(call: str) -> None:
    site = EvaluatedTables({"odd": 5, "t": 5}, FakeStorages())
    odd = iter([KeyError("type 5")])

    def fail_once(name: str) -> None:
        if name == call and (error := next(odd, None)) is not None:
            raise error

    site.client.on_call = fail_once
    found = site.evaluate()
    assert [item.entity for item in found.evaluated] == [entity("t", number) for number in range(5)]
    assert [reason for reason in found.skipped if "KeyError" in reason]


BROKEN = MetastoreError("table d.odd", "MetaException: no such storage handler", "look at the metastore's log")


def with_a_metastore_that_fails(call: str, times: int, error: Exception = BROKEN) -> EvaluatedTables:
    """Tables of which the first are odd; of each that call fails."""
    site = EvaluatedTables({**{f"odd_{number}": 5 for number in range(times)}, "t": 5}, FakeStorages())
    errors = iter([error] * times)

    def fail(name: str) -> None:
        if name == call and (error := next(errors, None)) is not None:
            raise error

    site.client.on_call = fail
    return site


@pytest.mark.parametrize("call", ["get_table", "get_partition_names", "get_partitions"])
@pytest.mark.parametrize("times", [1, MOST_FAILED_TABLES])
def test_a_few_tables_on_which_the_metastore_fails_are_told_and_keep_no_other_from_being_evaluated(
    call: str, times: int, caplog: pytest.LogCaptureFixture
) -> None:
    found = with_a_metastore_that_fails(call, times).evaluate()
    assert [due.entity for due in found.due] == [entity("t", number) for number in range(5)]
    told = tuple(f"table d.odd_{number}: {BROKEN}" for number in range(times))
    assert (found.skipped, found.refused) == (told, told)
    assert [record.getMessage() for record in caplog.records] == [f"not evaluated: {reason}" for reason in told]


@pytest.mark.parametrize("call", ["get_table", "get_partition_names", "get_partitions"])
def test_a_metastore_that_fails_on_many_tables_or_on_one_that_is_named_ends_the_evaluation(call: str) -> None:
    with pytest.raises(MetastoreError, match="storage handler"):
        with_a_metastore_that_fails(call, MOST_FAILED_TABLES + 1).evaluate()
    with pytest.raises(MetastoreError, match="storage handler"):
        with_a_metastore_that_fails(call, 1).evaluate("d.odd_0", "d.t")
    assert looking_threads() == []


@pytest.mark.parametrize("call", ["get_table", "get_partition_names", "get_partitions"])
@pytest.mark.parametrize("times", [1, MOST_FAILED_TABLES])
def test_a_metastore_that_fails_on_all_tables_ends_the_evaluation_however_few_they_are(call: str, times: int) -> None:
    """Else a sweep would be green that saw nothing."""
    with pytest.raises(MetastoreError, match="storage handler"):
        with_a_metastore_that_fails(call, times).evaluate("d.odd_*")
    assert looking_threads() == []


def with_databases_that_fail(call: str, times: int, error: Exception = BROKEN) -> EvaluatedTables:
    """The tables of ``d``, which is listed after the databases of which that call fails."""
    site = with_a_metastore_that_fails(call, times, error)
    site.client.partitions = {"t": 5}
    site.client.databases = lambda: [*(f"closed_{number}" for number in range(times)), "d"]  # type: ignore[method-assign]
    return site


@pytest.mark.parametrize("call", ["get_database", "tables"])
@pytest.mark.parametrize("error", [BROKEN, KeyError("type 5")])
def test_a_few_databases_that_cannot_be_listed_are_told_and_keep_no_other_from_being_evaluated(
    call: str, error: Exception
) -> None:
    found = with_databases_that_fail(call, MOST_FAILED_TABLES, error).evaluate("*.t", "c*.orders")
    assert [due.entity for due in found.due] == [entity("t", number) for number in range(5)]
    assert [reason.partition(":")[0] for reason in found.refused] == [
        f"database closed_{number}" for number in range(MOST_FAILED_TABLES)
    ]
    assert found.skipped == found.refused
    assert found.unmatched == (), "nobody knows what is in them"


@pytest.mark.parametrize("call", ["get_database", "tables"])
@pytest.mark.parametrize(
    ("times", "include"),
    [(MOST_FAILED_TABLES + 1, ["*.*"]), (1, ["closed_0.*", "d.*"]), (1, ["closed_0.t", "d.*"]), (1, ["closed_*.*"])],
)
def test_a_metastore_that_fails_on_many_databases_on_all_or_on_one_that_is_named_ends_the_evaluation(
    call: str, times: int, include: list[str]
) -> None:
    with pytest.raises(MetastoreError, match="storage handler"):
        with_databases_that_fail(call, times).evaluate(*include)


@pytest.mark.parametrize("kind", [MetastoreUnavailableError, MetastoreVersionError])
@pytest.mark.parametrize("call", ["get_database", "get_table", "get_partitions"])
def test_what_concerns_every_table_ends_the_evaluation_at_the_first(call: str, kind: type[MetastoreError]) -> None:
    with pytest.raises(kind):
        with_a_metastore_that_fails(call, 1, kind("metastore", "is another", "correct it")).evaluate()


def test_a_table_whose_aborted_writes_the_metastore_does_not_date_is_one_however_many_partitions_it_has() -> None:
    error = MetastoreError("transactions", "the metastore failed inside the call", "look")
    storages = FakeStorages(listing=lambda location: deltas(3 if number_of(location) else 1))
    found = with_an_aborted_write(error, storages).evaluate()
    assert [item.entity for item in found.evaluated] == [entity("t", 0)], "it has nothing of the aborted write"
    assert set(found.refused) == {"table d.t: transactions: the metastore failed inside the call. Remedy: look."}
    assert len(found.refused) == 199


@pytest.mark.parametrize(
    ("named", "reason", "remedy"),
    [
        ("d.ordres", "does not exist", "correct the name: there is d.orders"),
        ("d.qqq", "does not exist", "correct the name"),
        ("slaes.orders", "does not exist, nor does the database slaes", "correct the name: there is sales"),
        ("qqq.orders", "does not exist, nor does the database qqq", "correct the name"),
    ],
)
def test_a_table_that_is_named_and_not_there_is_told_with_what_was_perhaps_meant(
    named: str, reason: str, remedy: str
) -> None:
    site = EvaluatedTables({"orders": 1}, FakeStorages())
    databases = site.client.databases
    site.client.databases = lambda: [*databases(), "sales"]  # type: ignore[method-assign]
    with pytest.raises(ObjectNotFoundError) as caught:
        site.evaluate(named)
    assert (caught.value.subject, caught.value.reason, caught.value.remedy) == (f"table {named}", reason, remedy)
