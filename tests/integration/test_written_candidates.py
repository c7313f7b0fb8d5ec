"""With candidates = written, a partition is listed where a real metastore's database has writes to it on record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.filesystem import Storage, Storages
from airflow_provider_acid.metastore.database.written import WriteRecords
from tests.harness.metastore_server import MetastoreServer
from tests.integration.compaction_site import AcidTable, Site
from tests.integration.conftest import make_site

PARTITIONS = ["p=a", "p=b", "p=c"]


@dataclass(frozen=True)
class ListedStorages(Storages):
    """Remembers what is opened; an evaluation opens a storage for each listing."""

    opened: list[str] = field(default_factory=list)

    def open(self, location: str) -> Storage:
        self.opened.append(location)
        return super().open(location)


@dataclass
class Evaluated:
    """What was found due, and what was listed for it: partitions, or names of tables without any."""

    due: list[str]
    listed: list[str]


@pytest.fixture
def hive_4_on_postgresql_site(hive_4_metastore_on_postgres: MetastoreServer) -> Iterator[Site]:
    server = hive_4_metastore_on_postgres
    yield from make_site(server)


@pytest.fixture(params=["hive_4_on_postgresql_site", "hive_3_site", "hive_3_site_on_mariadb"])
def site(request: pytest.FixtureRequest) -> Site:
    site: Site = request.getfixturevalue(request.param)
    return site


def evaluate(site: Site, *include: str, candidates: Candidates = Candidates.WRITTEN) -> Evaluated:
    assert site.hive_database is not None
    storages = ListedStorages()
    settings = replace(site.settings, candidates=candidates, storages=storages)
    found = site.initiator(settings).evaluate(TableSelection.of(include or [f"{site.database}.*"]))
    assert found.skipped == ()
    due = [item.entity.partition or item.entity.table for item in found.due]
    return Evaluated(sorted(due), sorted(location.rpartition("/")[2] for location in storages.opened))


def recorded(site: Site, table: str) -> frozenset[str | None]:
    assert site.hive_database is not None
    return WriteRecords(site.hive_database).partitions(site.database, table)


def compact_and_clean(table: AcidTable, partition: str | None = None) -> None:
    assert table.site.compact(table.entity(partition)).state is OutcomeState.COMPACTED
    (cleaned,) = table.site.clean(table.entity(partition))
    assert cleaned.state is CleaningState.CLEANED, cleaned


def insert_twice(table: AcidTable, *partitions: str | None) -> None:
    for partition in partitions:
        for value in (1, 2):
            table.insert(value, partition=partition)


def test_what_was_written_is_found_until_it_is_cleaned_and_again_when_it_is_written_to(site: Site) -> None:
    table = site.table(partitions=PARTITIONS)
    insert_twice(table, "p=a", "p=c")
    assert evaluate(site) == Evaluated(["p=a", "p=c"], ["p=a", "p=c"])
    assert evaluate(site, candidates=Candidates.ALL) == Evaluated(["p=a", "p=c"], PARTITIONS)

    compact_and_clean(table, "p=a")
    assert evaluate(site) == Evaluated(["p=c"], ["p=c"])
    insert_twice(table, "p=a")
    assert evaluate(site) == Evaluated(["p=a", "p=c"], ["p=a", "p=c"])


def test_a_partition_with_few_deltas_stays_a_candidate(site: Site) -> None:
    """It is listed each time, until it has so many that it is due."""
    table = site.table(partitions=PARTITIONS)
    table.insert(1, partition="p=b")
    assert evaluate(site) == evaluate(site) == Evaluated([], ["p=b"])
    table.insert(2, partition="p=b")
    assert evaluate(site) == Evaluated(["p=b"], ["p=b"])


def test_an_unpartitioned_table_is_found_until_it_is_cleaned(site: Site) -> None:
    table = site.table("whole")
    site.table("untouched")
    insert_twice(table, None)
    assert evaluate(site) == Evaluated(["whole"], ["whole"])
    compact_and_clean(table)
    assert evaluate(site) == Evaluated([], [])


def test_a_partition_with_nothing_but_an_aborted_write_is_looked_at_and_one_with_an_open_write_is_not(
    site: Site,
) -> None:
    table = site.table(partitions=PARTITIONS)
    still_open = table.write("p=a").insert(1)
    table.write("p=b").insert(2).abort()
    assert evaluate(site) == Evaluated([], ["p=b"])
    still_open.commit()
    assert evaluate(site).listed == ["p=a", "p=b"]


def test_an_insert_that_names_its_partitions_when_it_has_written_them_is_found(site: Site) -> None:
    table = site.table(partitions=PARTITIONS)
    write_dynamically(site, table, ["p=a", "p=c"])
    assert evaluate(site) == Evaluated([], ["p=a", "p=c"])


@pytest.mark.parametrize("name", ["p=A%2FB", "p=Z", "p=__HIVE_DEFAULT_PARTITION__", "p=100%25"])
def test_a_name_is_found_though_hive_records_another_spelling(site: Site, name: str) -> None:
    """Hive 3 records the partition of an INSERT in lower case, Hive 4 escapes it once more."""
    table = site.table(partitions=[name, "p=other"])
    insert_twice(table, name)
    is_respelled = name != name.lower() if site.renames_publish else "%" in name
    assert (recorded(site, "t") != {name}) == is_respelled
    assert evaluate(site) == Evaluated([name], [name])
    compact_and_clean(table, name)
    assert evaluate(site) == Evaluated([], [])


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_after_a_dynamic_insert_that_ended_before_it_named_its_partitions_hive_4_has_all_of_them_looked_at(
    site: Site, end: str
) -> None:
    table = site.table(partitions=PARTITIONS)
    (txn,) = site.admin.open_transactions()
    site.admin.allocate_write_ids(site.database, table.name, [txn])
    site.admin.lock_as_dynamic_writer(txn, site.database, table.name)
    getattr(site.admin, end)(txn)
    assert evaluate(site).listed == ([] if site.renames_publish else PARTITIONS)


def test_names_that_a_database_may_take_for_equal_are_told_apart(site: Site) -> None:
    table = site.table(partitions=["p=e", "p=é", "p=E"])
    write_dynamically(site, table, ["p=e", "p=é", "p=E"])
    assert recorded(site, "t") == {"p=e", "p=é", "p=E"}


def test_the_records_of_a_renamed_table_move_with_it(site: Site) -> None:
    table = site.table("old", partitions=PARTITIONS)
    insert_twice(table, "p=b")
    table.write("p=c").insert(3).abort()
    site.admin.rename_table(site.database, "old", "new")
    found = evaluate(site)
    assert (found.due, found.listed) == (["p=b"], ["p=b", "p=c"])


def test_the_records_of_a_dropped_partition_go_with_it_and_another_of_its_name_is_new(site: Site) -> None:
    table = site.table(partitions=PARTITIONS)
    insert_twice(table, "p=a", "p=b")
    site.admin.drop_partition(site.database, "t", "p=a")
    table.add_partition("p=a")
    assert evaluate(site) == Evaluated(["p=b"], ["p=b"])


def write_dynamically(site: Site, table: AcidTable, partitions: Sequence[str]) -> None:
    (txn,) = site.admin.open_transactions()
    write_id = site.admin.allocate_write_ids(site.database, table.name, [txn])[txn]
    site.admin.lock_as_dynamic_writer(txn, site.database, table.name)
    site.admin.add_dynamic_partitions(txn, write_id, site.database, table.name, partitions)
    site.admin.commit(txn)
