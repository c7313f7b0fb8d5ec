"""Tables and partitions that lie in each other's directories are neither merged nor cleaned."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.location import Directory, Occupied
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.database.locations import StoredLocations
from airflow_provider_acid.metastore.thrift import structs
from airflow_provider_acid.metastore.thrift.wire import Method, struct_of
from airflow_provider_acid.metastore.values import CompactionState
from tests.integration.compaction_site import ON_BOTH_METASTORES, AcidTable, Site, fingerprint

SHARED = "the cleaning of one would delete files of the other"


def victim_table(site: Site) -> AcidTable:
    table = site.table("victim")
    for value in range(3):
        table.insert(value)
    return table


def intruder(site: Site, location: Path) -> AcidTable:
    """A table with three aborted writes, after which a cleaning would delete the first three deltas."""
    table = site.table("intruder", location=location)
    writes = [table.write() for _ in range(4)]
    for write in writes[:3]:
        write.abort()
    writes[3].commit()
    return table


@ON_BOTH_METASTORES
@pytest.mark.parametrize("where", ["", "..", "delta_0000001_0000001_0000"], ids=["same", "above", "below"])
def test_a_table_in_anothers_directory_is_refused_before_a_request_is_made(site: Site, where: str) -> None:
    victim = victim_table(site)
    table = intruder(site, victim.folder() / where)
    before = fingerprint(victim.location)
    outcome = site.compact(table.entity())
    assert (outcome.state, site.rows(table.entity())) == (OutcomeState.REFUSED, [])
    assert outcome.message.startswith(f"{table.entity()}: lies at ")
    assert "and " in outcome.message
    assert SHARED in outcome.message
    assert fingerprint(victim.location) == before
    assert victim.values() == [0, 1, 2]


@ON_BOTH_METASTORES
def test_the_evaluation_says_so_and_asks_for_nothing(site: Site) -> None:
    victim = victim_table(site)
    table = site.table("intruder", location=victim.folder())
    for _ in range(3):
        table.write().commit()
    evaluation = site.evaluate(f"{site.database}.intruder")
    assert evaluation.due == ()
    (refused,) = evaluation.refused
    assert refused.startswith(f"{table.entity()}: lies at ")
    assert f"and {victim.entity()} at " in refused
    assert SHARED in refused


@ON_BOTH_METASTORES
def test_what_moved_into_anothers_directory_after_its_compaction_is_not_cleaned(site: Site) -> None:
    victim = victim_table(site)
    table = site.table("moving")
    for value in range(3):
        table.insert(value)
    assert site.compact(table.entity()).state is OutcomeState.COMPACTED
    before = fingerprint(victim.location)
    home = site.admin.table_uri(site.database, table.name)
    site.admin.set_table_location(site.database, table.name, f"file:{victim.location}")
    (cleaning,) = site.clean(table.entity())
    assert (cleaning.state, cleaning.deleted) == (CleaningState.FAILED, ())
    assert f"and {victim.entity()} at " in cleaning.message
    assert SHARED in cleaning.message
    assert fingerprint(victim.location) == before

    site.admin.set_table_location(site.database, table.name, home)
    (cleaning,) = site.clean(table.entity())
    assert cleaning.state is CleaningState.CLEANED
    assert table.values() == [0, 1, 2]
    assert [row.state for row in site.rows(table.entity())] == [CompactionState.SUCCEEDED]


@ON_BOTH_METASTORES
def test_a_table_with_a_directory_of_its_own_anywhere_is_compacted_and_cleaned(site: Site) -> None:
    victim_table(site)
    table = site.table("apart", location=site.server.warehouse / f"{site.database}-apart")
    for value in range(3):
        table.insert(value)
    assert site.compact(table.entity()).state is OutcomeState.COMPACTED
    assert [cleaning.state for cleaning in site.clean(table.entity())] == [CleaningState.CLEANED]
    assert table.values() == [0, 1, 2]


def test_all_tables_are_known_with_their_locations(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_provider_acid.metastore.thrift.catalog.TABLES_PER_CALL", 2)
    tables = [site.table(f"t{number}") for number in range(5)]
    found = dict(site.client.table_locations())
    for table in tables:
        assert Directory.of(found[table.entity()]) == Directory.of(str(f"file:{table.location}"))


@ON_BOTH_METASTORES
def test_the_metastore_tells_where_its_warehouse_is(site: Site) -> None:
    warehouse = site.client.config_value("metastore.warehouse.dir")
    assert Directory.of(warehouse) == Directory.of(f"file:{site.server.warehouse}")


def test_where_a_databases_managed_tables_lie_is_told_where_somebody_chose_it(site: Site) -> None:
    assert site.client.get_database(site.database).managed_location == ""
    chosen = f"file:{site.server.warehouse}/{site.database}-chosen"
    create = Method("create_database", (struct_of(structs.Database),))
    database = structs.Database(name=f"{site.database}chosen", managed_location=chosen)
    site.client._invoke("database", create, database, repeatable=False)
    assert site.client.get_database(database.name).managed_location == chosen


def partition_apart(site: Site) -> tuple[AcidTable, Path]:
    """A table with a partition of three rows that lies apart from it, and where."""
    victim = site.table("victim", partitions=["p=near"])
    apart = site.server.warehouse / f"{site.database}-outside" / "far"
    site.admin.add_partitions(site.database, "victim", ["p=far"], uri=f"file:{apart}")
    return victim, apart


NEAR_APART = pytest.mark.parametrize("where", ["", "..", "below"], ids=["same", "above", "below"])


@ON_BOTH_METASTORES
@NEAR_APART
def test_a_table_at_anothers_partition_that_lies_apart_is_refused(site: Site, where: str) -> None:
    """Hive 4 is asked without its database here, Hive 3 with it."""
    victim, apart = partition_apart(site)
    keep = apart / "delta_0000001_0000001_0000" / "bucket_00000"
    keep.parent.mkdir(parents=True)
    keep.write_bytes(b"row")
    table = intruder(site, apart / where)
    before = fingerprint(apart)
    outcome = site.compact(table.entity())
    assert (outcome.state, site.rows(table.entity())) == (OutcomeState.REFUSED, [])
    assert f"and {victim.entity()}" in outcome.message
    assert SHARED in outcome.message
    assert fingerprint(apart) == before


@ON_BOTH_METASTORES
@NEAR_APART
def test_what_moved_to_anothers_partition_that_lies_apart_is_not_cleaned(site: Site, where: str) -> None:
    victim, apart = partition_apart(site)
    table = site.table("moving")
    for value in range(3):
        table.insert(value)
    assert site.compact(table.entity()).state is OutcomeState.COMPACTED
    place = apart / where
    place.mkdir(parents=True, exist_ok=True)
    site.admin.set_table_location(site.database, table.name, f"file:{place}")
    (cleaning,) = site.clean(table.entity())
    assert (cleaning.state, cleaning.deleted) == (CleaningState.FAILED, ())
    assert f"and {victim.entity()}" in cleaning.message
    assert SHARED in cleaning.message


@ON_BOTH_METASTORES
@NEAR_APART
def test_a_partition_at_anothers_directory_is_refused(site: Site, where: str) -> None:
    victim = victim_table(site)
    table = site.table("parted", partitions=["p=near"])
    site.admin.add_partitions(site.database, "parted", ["p=far"], uri=f"file:{victim.folder() / where}")
    for _ in range(3):
        table.write("p=near").commit()
    before = fingerprint(victim.location)
    outcome = site.compact(table.entity("p=far"))
    assert outcome.state is OutcomeState.REFUSED
    assert SHARED in outcome.message
    assert fingerprint(victim.location) == before


# The metastore's database


@pytest.fixture(params=["hive_3_site", "hive_3_site_on_mariadb"])
def stored(request: pytest.FixtureRequest) -> tuple[Site, StoredLocations]:
    site: Site = request.getfixturevalue(request.param)
    database = site.hive_database
    assert isinstance(database, MetastoreDatabase)
    return site, StoredLocations(database)


def test_the_database_knows_tables_and_partitions_at_above_and_below(stored: tuple[Site, StoredLocations]) -> None:
    site, locations = stored
    table = site.table("parted", partitions=["p=a", "p=b"])
    root = site.admin.table_uri(site.database, "parted")
    own = Entity(site.database, "asking")

    def other(uri: str, asking: Entity = own) -> str | None:
        place = Directory.of(uri)
        found = Occupied(locations.near(place, asking)).other(place, asking)
        return None if found is None else str(found[0])

    assert other(root) == str(table.entity())
    assert other(f"{root}/x") == str(table.entity())
    assert other(root.replace("file:/", "file:///") + "/p=a/x") is not None
    assert other(f"{root}/../PARTED") is None
    assert other(f"{root}_2") is None
    assert other(f"{root}/p=a", table.entity("p=a")) is None
    assert other(f"{root}/p=a", table.entity("p=b")) == str(table.entity("p=a"))
    assert other(root, table.entity("p=b")) == str(table.entity("p=a"))
    assert other(root, table.entity()) is None
    above = other(root.rpartition("/")[0])
    assert above is not None
    assert above.startswith(f"{site.database}.parted")
