"""What is asked before a location is believed to be one table's alone, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.location import Directory
from airflow_provider_acid.compaction import neighbours as neighbours_module
from airflow_provider_acid.compaction.neighbours import KnownPlaces, Neighbours
from airflow_provider_acid.exceptions import (
    MetastoreError,
    MetastoreUnavailableError,
    ObjectNotFoundError,
    UnsupportedTableError,
)
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.values import DatabaseInfo, PartitionInfo, TableInfo

USUAL = "file:/wh/d.db/t"
VICTIM = (Entity("d", "victim"), "file:/wh/d.db/victim")


class Catalogue(AcidMetastoreClient):
    """Tables by their locations; counts what it is asked."""

    def __init__(
        self, *tables: tuple[Entity, str], warehouse: str = "file:/wh", database: str = "file:/ext/d.db"
    ) -> None:
        super().__init__([MetastoreAddress("nowhere")])
        self.known = tables
        self.warehouse = warehouse
        self.database = database
        self.partitions: dict[str, str] = {}
        self.others_partitions: dict[Entity, dict[str, str]] = {}
        self.error: MetastoreError | None = None
        self.asked: Counter[str] = Counter()

    def config_value(self, name: str) -> str:
        self.asked[name] += 1
        return self.warehouse

    def get_database(self, name: str) -> DatabaseInfo:
        self.asked["get_database"] += 1
        return DatabaseInfo(name, {}, self.database, "file:/managed/d.db")

    def table_locations(self) -> Iterator[tuple[Entity, str]]:
        self.asked["table_locations"] += 1
        if self.error is not None:
            raise self.error
        yield from self.known

    def get_partition_names(self, database: str, table: str) -> list[str]:
        self.asked["get_partition_names"] += 1
        return list(self._partitions_of(database, table))

    def partition_locations(self, database: str, table: str, names: Sequence[str]) -> Iterator[str]:
        self.asked["partition_locations"] += 1
        partitions = self._partitions_of(database, table)
        return (partitions[name] for name in names)

    def _partitions_of(self, database: str, table: str) -> dict[str, str]:
        return (
            self.partitions
            if (database, table) == ("d", "t")
            else self.others_partitions.get(Entity(database, table), {})
        )

    def get_partitions(self, database: str, table: str, names: Sequence[str]) -> list[PartitionInfo]:
        self.asked["get_partitions"] += 1
        return [partition(name, self.partitions[name]) for name in names]


def table(location: str = USUAL, *, database: str = "d", name: str = "t") -> TableInfo:
    return TableInfo(database, name, location, (), (), {}, -1, (), "MANAGED_TABLE", "", "hive")


def partition(name: str, location: str) -> PartitionInfo:
    return PartitionInfo(name, (name,), location, {}, ())


@pytest.mark.parametrize(
    ("of_table", "catalogue", "asked"),
    [
        (table(), Catalogue(), {}),
        (table("hdfs://nn/wh/d.db/t"), Catalogue(warehouse="/wh"), {}),
        (table("file:/wh/t", database="default"), Catalogue(), {}),
        (table("file:/data/d.db/t"), Catalogue(database="file:/data/d.db"), {"get_database": 1}),
        (table("file:/data/d/t"), Catalogue(database="file:/data/d"), {"get_database": 1}),
        (table("file:/managed/d.db/t"), Catalogue(), {"get_database": 1}),
        (table("file:/data/x/t"), Catalogue(database="file:/data/x"), {"get_database": 1, "table_locations": 1}),
        (table("file:/wh/d.db/u"), Catalogue(), {"get_database": 1, "table_locations": 1}),
    ],
    ids=[
        "warehouse",
        "no scheme",
        "default",
        "database's",
        "database's name",
        "managed",
        "odd database",
        "another's name",
    ],
)
def test_a_place_that_nobody_else_can_have_needs_no_look(
    of_table: TableInfo, catalogue: Catalogue, asked: dict[str, int]
) -> None:
    neighbours = Neighbours(catalogue)
    for number in range(1000):
        name = f"p=a%2F{number}/q=b"
        neighbours.check(of_table, partition(name, f"{of_table.location}/{name}"))
    assert catalogue.asked == {"metastore.warehouse.dir": 1, **asked}


pieces = st.text(st.sampled_from("ap=/. :%"), max_size=6)


@given(pieces, pieces, st.booleans())
def test_what_is_spelled_as_a_partitions_own_folder_is_it(location: str, name: str, is_below: bool) -> None:
    """No spelling is looked into then, so one that means another place must not be taken for it."""
    root = f"file:/wh/{location}"
    of_partition = partition(name, f"{root}/{name}" if is_below else f"file:/wh/{name}")
    if neighbours_module._is_plainly_below(root, of_partition):
        assert Directory.of(of_partition.location) == Directory.of(root).child(name)


def test_a_table_that_lies_alone_says_nothing_of_the_next_one() -> None:
    neighbours = Neighbours(Catalogue(VICTIM))
    alone, shared = table(), table(VICTIM[1])
    neighbours.check(alone, partition("p=1", f"{USUAL}/p=1"))
    with pytest.raises(UnsupportedTableError, match="the cleaning of one would delete files of the other"):
        neighbours.check(shared, partition("p=1", f"{VICTIM[1]}/p=1"))
    with pytest.raises(UnsupportedTableError, match="the cleaning of one would delete files of the other"):
        neighbours.check(shared, partition("p=2", f"{VICTIM[1]}/p=2"))


@pytest.mark.parametrize(
    "location",
    ["file:/wh/d.db/victim", "file:///wh/d.db/x/../victim/", "file:/wh/d.db/victim/below", "file:/wh", "file:/wh/d.db"],
)
def test_a_table_at_above_or_below_another_is_refused(location: str) -> None:
    catalogue = Catalogue(VICTIM, (Entity("d", "t"), location))
    neighbours = Neighbours(catalogue)
    for _ in range(2):
        with pytest.raises(UnsupportedTableError) as error:
            neighbours.check(table(location), None)
        assert str(error.value).startswith(
            f"d.t: lies at {location}, and d.victim at file:/wh/d.db/victim: the cleaning of one would delete files of "
            "the other. Remedy: give each a directory of its own"
        )
    assert catalogue.asked["table_locations"] == 1


@pytest.mark.parametrize("location", ["file:/elsewhere/p=a", f"{USUAL}/old"])
def test_partitions_elsewhere_that_nobody_shares_are_fetched_once(location: str) -> None:
    catalogue = Catalogue(VICTIM, (Entity("d", "t"), USUAL))
    catalogue.partitions = {f"p={number}": f"{location}{number}" for number in range(100)}
    neighbours = Neighbours(catalogue)
    for name, uri in catalogue.partitions.items():
        neighbours.check(table(), partition(name, uri))
    # Of the own table's partitions once, and of each table's once.
    assert catalogue.asked == {
        "metastore.warehouse.dir": 1,
        "table_locations": 1,
        "get_partitions": 1,
        "get_partition_names": 3,
        "partition_locations": 2,
    }


def test_who_works_beside_others_asks_nothing_that_they_have_asked() -> None:
    first, second = Catalogue(VICTIM), Catalogue(VICTIM)
    for catalogue in (first, second):
        catalogue.partitions = {"p=a": "file:/elsewhere/p=a", "p=b": "file:/elsewhere/p=b"}
    known = KnownPlaces()
    Neighbours(first, known=known).check(table(), partition("p=a", "file:/elsewhere/p=a"))
    Neighbours(second, known=known).check(table(), partition("p=b", "file:/elsewhere/p=b"))
    assert first.asked
    assert not second.asked


@pytest.mark.parametrize(
    ("location", "other"),
    [
        ("file:/wh/d.db/victim", "d.victim at file:/wh/d.db/victim"),
        ("file:/wh/d.db/victim/p=a", "d.victim at file:/wh/d.db/victim"),
        (f"{USUAL}/p=b", f"d.t/p=b at {USUAL}/p=b"),
        (f"{USUAL}/p=b/below", f"d.t/p=b at {USUAL}/p=b"),
        (USUAL, f"d.t/p=b at {USUAL}/p=b"),
    ],
)
def test_a_partition_at_above_or_below_another_is_refused(location: str, other: str) -> None:
    catalogue = Catalogue(VICTIM, (Entity("d", "t"), USUAL))
    catalogue.partitions = {"p=a": location, "p=b": f"{USUAL}/p=b"}
    neighbours = Neighbours(catalogue)
    neighbours.check(table(), partition("p=b", f"{USUAL}/p=b"))
    with pytest.raises(UnsupportedTableError, match=f"^d.t/p=a: lies at {location}, and {other}: the cleaning"):
        neighbours.check(table(), partition("p=a", location))


def test_what_moved_since_is_looked_at_again() -> None:
    catalogue = Catalogue(VICTIM)
    neighbours = Neighbours(catalogue)
    neighbours.check(table(), None)
    with pytest.raises(UnsupportedTableError, match="d.victim"):
        neighbours.check(replace(table(), location=VICTIM[1]), None)


class Stored:
    """The metastore's database, which may not be readable; notes what it is asked."""

    def __init__(self, *known: tuple[Entity, str], error: MetastoreError | None = None) -> None:
        self.known = known
        self.error = error
        self.asked: list[Directory] = []

    def near(self, directory: Directory, own: Entity) -> list[tuple[Entity, str]]:
        self.asked.append(directory)
        if self.error is not None:
            raise self.error
        return list(self.known)


def with_stored(catalogue: Catalogue, stored: Stored, monkeypatch: pytest.MonkeyPatch) -> Neighbours:
    monkeypatch.setattr(neighbours_module, "StoredLocations", lambda database: stored)
    return Neighbours(catalogue, cast(MetastoreDatabase, object()))


def test_the_database_is_asked_once_for_all_partitions_below_their_table(monkeypatch: pytest.MonkeyPatch) -> None:
    anothers = Entity("d", "victim", "p=x"), f"{USUAL}/old7/below"
    stored = Stored(anothers)
    catalogue = Catalogue()
    neighbours = with_stored(catalogue, stored, monkeypatch)
    for number in range(5):
        neighbours.check(table(), partition(f"p={number}", f"{USUAL}/old{number}"))
    with pytest.raises(UnsupportedTableError, match="^d.t/p=7: .*d.victim/p=x at "):
        neighbours.check(table(), partition("p=7", f"{USUAL}/old7"))
    assert stored.asked == [Directory.of(USUAL)]
    assert catalogue.asked == {"metastore.warehouse.dir": 1}


def test_where_the_database_may_not_be_read_the_catalogue_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = Stored(error=MetastoreError("SDS", "lacks a right", "grant it"))
    catalogue = Catalogue(VICTIM)
    neighbours = with_stored(catalogue, stored, monkeypatch)
    with pytest.raises(UnsupportedTableError, match="d.victim"):
        neighbours.check(table(VICTIM[1]), None)
    assert catalogue.asked["table_locations"] == 1


def test_a_database_that_does_not_answer_is_no_reason_to_believe_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = Stored(error=MetastoreUnavailableError("SDS", "does not answer", "start it"))
    with pytest.raises(MetastoreUnavailableError):
        with_stored(Catalogue(), stored, monkeypatch).check(table("file:/x/t"), None)


APART = "s3a://elsewhere/old"


def with_partition_apart(tables: int = 1, uri: str = f"{APART}/p=x") -> Catalogue:
    """The victim and more tables, all partitioned; one partition of the victim lies elsewhere."""
    others = [(Entity("d", f"other{number}"), f"file:/wh/d.db/other{number}") for number in range(tables)]
    catalogue = Catalogue(VICTIM, *others)
    for entity, location in others:
        catalogue.others_partitions[entity] = {"p=1": f"{location}/p=1"}
    catalogue.others_partitions[VICTIM[0]] = {"p=w": f"{VICTIM[1]}/p=w", "p=x": uri}
    return catalogue


NEAR_APART = [f"{APART}/p=x", "s3://elsewhere/old//p=x/", f"{APART}/p=x/below", APART, "s3a://elsewhere"]


@pytest.mark.parametrize("location", NEAR_APART)
@pytest.mark.parametrize("exclusive", [(), ("s3a://other/*",)])
def test_without_a_database_anothers_partition_that_lies_apart_is_seen(
    location: str, exclusive: tuple[str, ...]
) -> None:
    told = f"d.victim at {APART}/p=x: the cleaning"
    with pytest.raises(UnsupportedTableError, match=told):
        Neighbours(with_partition_apart(), None, exclusive).check(table(location), None)
    catalogue = with_partition_apart()
    catalogue.partitions = {"p=a": location}
    with pytest.raises(UnsupportedTableError, match=told):
        Neighbours(catalogue, None, exclusive).check(table(), partition("p=a", location))


def test_all_partitions_are_fetched_once_for_a_run() -> None:
    catalogue = with_partition_apart(tables=9)
    neighbours = Neighbours(catalogue)
    for number in range(100):
        neighbours.check(table(f"file:/x/{number}"), None)
    assert catalogue.asked["table_locations"] == 1
    assert catalogue.asked["get_partition_names"] == catalogue.asked["partition_locations"] == 10


def test_own_partitions_apart_hide_no_others() -> None:
    catalogue = Catalogue(VICTIM, (Entity("d", "t"), f"{APART}/t"))
    catalogue.partitions = {f"p={number}": f"{APART}/mine/{number}" for number in range(5)}
    catalogue.others_partitions[VICTIM[0]] = {"p=x": f"{APART}/p=x"}
    catalogue.known = catalogue.known[::-1]
    with pytest.raises(UnsupportedTableError, match="d.victim at"):
        Neighbours(catalogue).check(table(APART), None)


UNKNOWN = (
    "^d.t: lies at s3a://b/x, and whether somebody else lies there cannot be known .*metastore_db_conn_id.*exclusive_"
)


def failing() -> Catalogue:
    catalogue = with_partition_apart()
    catalogue.error = MetastoreError("tables", "the metastore failed", "look")
    return catalogue


def with_too_many() -> Catalogue:
    catalogue = with_partition_apart()
    catalogue.others_partitions[VICTIM[0]] = {f"p={number}": VICTIM[1] for number in range(4)}
    return catalogue


@pytest.mark.parametrize(("make", "asks"), [(failing, 1), (with_too_many, 1)], ids=["error", "too many"])
def test_what_cannot_be_known_is_refused_unless_the_site_says_so(
    make: Callable[[], Catalogue], asks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours_module, "MOST_PARTITIONS", 3)
    catalogue = make()
    neighbours = Neighbours(catalogue)
    for _ in range(3):
        with pytest.raises(UnsupportedTableError, match=UNKNOWN):
            neighbours.check(table("s3a://b/x"), None)
    assert catalogue.asked["table_locations"] == asks
    assert catalogue.asked["partition_locations"] == 0
    for pattern in ("s3a://b/*", "S3://b/x/", "s3a://b/x"):
        Neighbours(make(), None, ["file:/y", pattern]).check(table("s3a://b/x"), None)
    with pytest.raises(UnsupportedTableError, match=UNKNOWN):
        Neighbours(make(), None, ["s3a://b/x/*", "x", "s3a://b"]).check(table("s3a://b/x"), None)


def test_a_pattern_does_not_allow_what_is_known_to_be_shared() -> None:
    with pytest.raises(UnsupportedTableError, match="d.victim at"):
        Neighbours(Catalogue(VICTIM), None, ["file:/*", "file:*"]).check(table(VICTIM[1]), None)


def test_a_table_that_is_dropped_meanwhile_is_passed_over() -> None:
    class Dropping(Catalogue):
        def get_partition_names(self, database: str, table: str) -> list[str]:
            raise ObjectNotFoundError(table, "is not known", "look")

    Neighbours(Dropping(VICTIM)).check(table("s3a://b/x"), None)
