"""What is asked for by hand: one table or partition, by the thresholds or against them, and through all refusals."""

from __future__ import annotations

import pytest

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.compaction.evaluate.demand import Demand, DemandedType, one_entity, one_table
from airflow_provider_acid.exceptions import ConfigurationError, ObjectNotFoundError, UnsupportedTableError
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.unit.compaction.evaluated_tables import EvaluatedTables, FakeStorages, deltas, entity

MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR


@pytest.mark.parametrize(
    ("partition", "type", "demand"),
    [
        (None, DemandedType.AUTO, Demand()),
        ("", DemandedType.MINOR, Demand((), MINOR)),
        (" ", DemandedType.MAJOR, Demand((), MAJOR)),
        (" ds=2026-01-01/region=eu ", DemandedType.AUTO, Demand(("ds=2026-01-01/region=eu",))),
        ("p=b\n p=a\r\n\np=b\n", DemandedType.MAJOR, Demand(("p=b", "p=a"), MAJOR)),
        ("p=a\u2028b", DemandedType.AUTO, Demand(("p=a\u2028b",))),
    ],
)
def test_a_demand_is_made_of_what_people_write(partition: str | None, type: DemandedType, demand: Demand) -> None:
    assert Demand.of(partition, type) == demand


@pytest.mark.parametrize("partition", ["2026-01-01", "ds=1/eu", "=1", "ds=", "ds=1\nds"])
def test_a_partition_that_no_metastore_spells_so_is_refused_with_an_example(partition: str) -> None:
    with pytest.raises(ConfigurationError, match="spell it as SHOW PARTITIONS does, e.g. ds=2026-01-01/region=eu"):
        Demand.of(partition, DemandedType.AUTO)


@pytest.mark.parametrize(
    ("database", "table", "message"),
    [
        ("sales", "*", "table"),
        ("*", "t", "database"),
        ("", "t", "database"),
        ("d", "a.b", "table"),
        ("d", " ", "table"),
    ],
)
def test_one_table_is_named_and_no_pattern(database: str, table: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{message} .* is not the name of one"):
        one_table(database, table)
    assert one_table("Sales", "Orders").include == ("sales.orders",)


@pytest.mark.parametrize(
    ("type", "count", "due"),
    [
        (None, 2, []),
        (None, 3, ["major: 3 deltas > 2; no base"]),
        (MINOR, 2, ["minor: asked for (not due: 2 deltas ≤ 2; no base)"]),
        (MAJOR, 2, ["major: asked for (not due: 2 deltas ≤ 2; no base)"]),
        (MINOR, 3, ["minor: asked for (major: 3 deltas > 2; no base)"]),
    ],
)
def test_the_thresholds_decide_unless_a_type_is_asked_for(
    type: CompactionType | None, count: int, due: list[str]
) -> None:
    site = EvaluatedTables({"t": None}, FakeStorages(listing=lambda location: deltas(count)))
    found = site.evaluate("d.t", demand=Demand(type=type))
    assert [item.reason for item in found.due] == due
    assert [item.type for item in found.due] == [type or MAJOR] * len(due)


def test_only_the_partitions_that_are_asked_for_are_looked_at() -> None:
    storages = FakeStorages()
    site = EvaluatedTables({"t": 5000}, storages)
    found = site.evaluate("d.t", demand=Demand(("p=00003", "p=04000")))
    assert {due.entity for due in found.due} == {entity("t", 3), entity("t", 4000)}
    assert len(storages.opened) == 2


def test_one_partition_is_not_several() -> None:
    with pytest.raises(ConfigurationError, match="is not of the form key=value"):
        one_entity("d", "t", "p=1\np=2")


@pytest.mark.parametrize("name", ["P=00003", "p=00003 ", "p=99999", "p=%30"])
def test_a_partition_is_found_by_its_exact_name_alone(name: str) -> None:
    """The metastore's database may find it by another, under which no reader is met by a lock."""
    with pytest.raises(ObjectNotFoundError, match=r"partition .* of table d\.t: does not exist"):
        EvaluatedTables({"t": 5}, FakeStorages()).evaluate("d.t", demand=Demand(("p=00001", name)))


def test_a_table_without_partitions_has_none() -> None:
    with pytest.raises(ObjectNotFoundError, match="the table has no partitions. Remedy: leave the partition empty"):
        EvaluatedTables({"t": None}, FakeStorages()).evaluate("d.t", demand=Demand(("p=1",)))


FAILED_TWICE = [CompactionRow(id, entity("t"), "major", CompactionState.FAILED) for id in (1, 2)]


def test_what_failed_twice_is_compacted_again_only_for_who_asks_for_a_type() -> None:
    site = EvaluatedTables({"t": None}, FakeStorages(), rows=FAILED_TWICE)
    found = site.evaluate("d.t")
    assert found.due == ()
    assert "acid_compact_table" in found.skipped[0]
    assert len(site.evaluate("d.t", demand=Demand(type=MAJOR)).due) == 1


def test_requests_for_other_partitions_are_not_this_ones_concern() -> None:
    rows = [CompactionRow(id, entity("t", id), "major", CompactionState.INITIATED) for id in (1, 2)]
    found = EvaluatedTables({"t": 5}, FakeStorages(), rows=rows).evaluate("d.t", demand=Demand(("p=00001",)))
    assert [due.request_id for due in found.due] == [1]
    assert (found.foreign, found.evaluated) == ((), ())


@pytest.mark.parametrize("type", [None, MINOR, MAJOR])
def test_a_table_that_is_refused_is_refused_whoever_asks(type: CompactionType | None) -> None:
    site = EvaluatedTables({"t": None}, FakeStorages(), parameters={"t": {"transactional": "false"}})
    with pytest.raises(UnsupportedTableError, match="is not an ACID table"):
        site.evaluate("d.t", demand=Demand(type=type))


@pytest.mark.parametrize("type", [MINOR, MAJOR])
def test_a_partition_with_something_unknown_in_it_is_refused_whoever_asks(type: CompactionType) -> None:
    def with_an_odd_file(location: str) -> Listing:
        listing = deltas(3)
        odd = FileEntry(f"{listing.directories[0]}/what.is.this", 1)
        return Listing((*listing.files, odd), listing.directories)

    found = EvaluatedTables({"t": None}, FakeStorages(listing=with_an_odd_file)).evaluate(
        "d.t", demand=Demand(type=type)
    )
    assert found.due == ()
    assert found.refused == found.skipped
    assert "what.is.this" in found.refused[0]


def test_where_nothing_is_to_be_merged_nothing_is_due_and_nobody_has_to_look_at_it() -> None:
    site = EvaluatedTables({"t": None}, FakeStorages(listing=lambda location: deltas(1)))
    found = site.evaluate("d.t", demand=Demand(type=MAJOR))
    assert (found.due, found.refused, len(found.skipped)) == ((), (), 1)
    assert "nothing to merge" in found.skipped[0]
