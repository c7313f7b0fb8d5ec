"""Which tables, partitions and requests a selection comes to, asked of the metastore in batches."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Set
from contextlib import closing
from difflib import get_close_matches
from fnmatch import fnmatchcase

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.candidates import written_partitions
from airflow_provider_acid.compaction.evaluate.looking import in_advance
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.facts import partitions_that_are_there
from airflow_provider_acid.exceptions import ObjectNotFoundError
from airflow_provider_acid.metastore.thrift.catalog import PARTITIONS_PER_CALL
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow, PartitionInfo, TableInfo

Locations = Generator[tuple[Entity, str, PartitionInfo | None], None, None]
RowsByEntity = dict[Entity, list[CompactionRow]]


def rows_by_entity(rows: Iterable[CompactionRow], selection: TableSelection) -> RowsByEntity:
    """Those of the queue's rows that belong to tables of a selection, by id within each partition.

    :param rows: by id.
    """
    found: RowsByEntity = {}
    for row in rows:
        if selection.matches(row.entity.full_table_name):
            found.setdefault(row.entity, []).append(row)
    return found


def matching_databases(client: AcidMetastoreClient, selection: TableSelection) -> list[str]:
    """Databases that may hold tables of a selection."""
    return [
        name
        for name in client.databases()
        if any(fnmatchcase(name.lower(), pattern) for pattern in selection.database_patterns)
    ]


def no_such_table(client: AcidMetastoreClient, full_name: str, names: Iterable[str]) -> ObjectNotFoundError:
    """The error for a table that is named and is not there, with what was perhaps meant.

    :param names: full names of the tables of its database, and perhaps of others.
    """
    databases = [name.lower() for name in client.databases()]
    database = full_name.partition(".")[0]
    is_known = database in databases
    near = get_close_matches(full_name, names, n=1) if is_known else get_close_matches(database, databases, n=1)
    return ObjectNotFoundError(
        f"table {full_name}",
        "does not exist" if is_known else f"does not exist, nor does the database {database}",
        f"correct the name: there is {near[0]}" if near else "correct the name",
    )


def demanded_locations(client: AcidMetastoreClient, table: TableInfo, partitions: Sequence[str]) -> Locations:
    """Some partitions with the URIs of their directories, as :func:`locations` gives all.

    :raises ObjectNotFoundError: the table has no partition of one of these names.
    """
    if not table.partition_keys:
        raise ObjectNotFoundError(
            f"partition {partitions[0]} of table {table.full_table_name}",
            "does not exist, for the table has no partitions",
            "leave the partition empty",
        )
    # By exact names: a database that ignores case would find one by another, under which no reader is met by a lock.
    known = set(client.get_partition_names(table.database, table.name))
    missing = [name for name in partitions if name not in known]
    if missing:
        raise ObjectNotFoundError(
            f"partition {missing[0]} of table {table.full_table_name}",
            "does not exist",
            "spell it exactly as SHOW PARTITIONS does, or check whether it was dropped",
        )
    for batch in _batches(partitions):
        yield from _placed(table, client.get_partitions(table.database, table.name, batch))


def locations(
    client: AcidMetastoreClient,
    table: TableInfo,
    recorded: Set[str | None] | None = None,
    expect: Callable[[int], None] = lambda count: None,
) -> Locations:
    """What of a table is compacted, each with the URI of its directory: its partitions, or the table itself.

    Of many partitions the next batch is fetched while the one before is worked on, over a connection of its own.
    Whoever may leave before the end closes the generator.

    :param recorded: partitions to which writes are recorded, where only those are wanted; see
        :func:`~airflow_provider_acid.compaction.candidates.written_partitions`.
    :param expect: told how many there are, before the first comes.
    """
    if recorded is not None and not recorded:
        return
    if not table.partition_keys:
        expect(1)
        yield Entity(table.database, table.name), table.location, None
        return
    names = client.get_partition_names(table.database, table.name)
    if recorded is not None:
        names = written_partitions(names, recorded)
    expect(len(names))
    if len(names) <= PARTITIONS_PER_CALL:
        yield from _placed(table, partitions_that_are_there(client, table.database, table.name, names))
        return
    with client.for_another_thread() as fetching:
        fetches = (partitions_that_are_there(fetching, table.database, table.name, batch) for batch in _batches(names))
        with closing(in_advance(fetches)) as fetched:
            try:
                for partitions in fetched:
                    yield from _placed(table, partitions)
            finally:
                # Whoever leaves early does not wait for an answer.
                fetching.interrupt()


def _batches(names: Sequence[str]) -> Iterator[list[str]]:
    return (list(names[start : start + PARTITIONS_PER_CALL]) for start in range(0, len(names), PARTITIONS_PER_CALL))


def _placed(table: TableInfo, partitions: list[PartitionInfo]) -> Iterator[tuple[Entity, str, PartitionInfo]]:
    for partition in partitions:
        yield Entity(table.database, table.name, partition.name), partition.location, partition
