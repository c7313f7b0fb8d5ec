"""The Hive-written tables of ``tests/fixtures``, brought into a running metastore with their own write ids."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypedDict

from tests.harness.metastore_server import MetastoreServer
from tests.harness.server_admin import admin_of
from tests.harness.thrift_admin import TableDefinition, ThriftAdmin

FIXTURES = Path(__file__).parents[1] / "fixtures"
VERSIONS = ("3.1.3", "4.0.1")
FIRST_WRITE_ID_AFTER_CONVERSION = 10_000_001
"""Hive gives a table that was converted to ACID no smaller write id; its original files have write id 0."""


@dataclass(frozen=True)
class HiveFixture:
    """A table as Hive left it, as lying in ``tests/fixtures``.

    :param definition: its DDL, in the database ``default``.
    :param rows: what Hive reads: ``row__id`` (full-ACID tables only), ``file`` and the columns as Hive prints them.
    :param high_water_mark: highest write id given out.
    :param open_write_ids: write ids of transactions that were open when Hive read the rows.
    :param aborted_write_ids: write ids of aborted transactions.
    """

    version: str
    name: str
    definition: TableDefinition
    rows: tuple[Mapping[str, object], ...]
    high_water_mark: int
    open_write_ids: frozenset[int]
    aborted_write_ids: frozenset[int]

    @property
    def full_acid(self) -> bool:
        """Whether rows carry ids; else the table is insert-only."""
        return self.definition.properties["transactional_properties"] == "default"

    def unpack(self, folder: Path) -> Path:
        """Unpacks the table into ``folder/name`` and returns that."""
        archive = FIXTURES / f"hive-{self.version}" / "tables" / f"{self.name}.tar.gz"
        folder.mkdir(parents=True, exist_ok=True)
        # Python's own tarfile wants another argument in every other version.
        subprocess.run(["tar", "-xzf", archive, "-C", folder, "--no-same-owner"], check=True)
        return folder / self.name


class Place(Protocol):
    """A storage other than the metastore's own warehouse."""

    @property
    def uri(self) -> str:
        """Of a directory for databases."""

    def put(self, folder: Path, uri: str) -> None:
        """Copies a local folder to a URI, which exists, with all below it."""


@dataclass(frozen=True)
class FixtureTable:
    """A fixture that is registered in a metastore.

    :param location: the table's folder in the metastore's warehouse; in another place, a copy of what was put there.
    :param uri: the table's location as the metastore keeps it.
    :param rows: what every reader must see, before and after any compaction; as in :class:`HiveFixture`.
    :param open_transactions: the transactions that still hold the open write ids, by write id.
    """

    database: str
    name: str
    location: Path
    rows: tuple[Mapping[str, object], ...]
    fixture: HiveFixture
    partitions: tuple[str, ...]
    open_transactions: Mapping[int, int]
    uri: str


def fixture_names(version: str) -> list[str]:
    """The tables there are of a Hive version."""
    return sorted(_snapshots(version))


def load_fixture(version: str, name: str) -> HiveFixture:
    """Reads everything about a fixture but its files."""
    folder = FIXTURES / f"hive-{version}"
    snapshot = _snapshots(version)[name]
    return HiveFixture(
        version=version,
        name=name,
        definition=parse_ddl((folder / "ddl" / f"{name}.sql").read_text()),
        rows=tuple(json.loads((folder / "rows" / f"{name}.json").read_text())),
        high_water_mark=snapshot["hwm"],
        open_write_ids=frozenset(snapshot["open"]),
        aborted_write_ids=frozenset(snapshot["aborted"]),
    )


def register(
    server: MetastoreServer,
    name: str,
    version: str,
    database: str,
    place: tuple[Place, Path] | None = None,
) -> FixtureTable:
    """Creates a fixture's table in a database (made where missing) with its files, partitions and write ids.

    The aborted transactions are remembered because they wrote: each has its rows in the metastore's TXN_COMPONENTS,
    without which the metastore forgets an aborted transaction and its write id counts as committed.
    Open ones stay open until the metastore's reaper, where it is on, finds them dead.

    :param place: where the database lies, and a local folder for the copy; None for the metastore's warehouse.
    """
    fixture = load_fixture(version, name)
    all_properties = {**fixture.definition.properties, **server.left_to_us}
    with admin_of(server) as admin:
        admin.create_database(database, uri=place and f"{place[0].uri}/{database}.db")
        location = admin.create_table(replace(fixture.definition, database=database, properties=all_properties))
        uri = admin.table_uri(database, name)
        location = fixture.unpack(place[1] if place else location.parent)
        if place:
            place[0].put(location, uri)
        partitions = _partitions(location, len(fixture.definition.partition_keys))
        admin.add_partitions(database, name, partitions)
        check_place(admin, database, name, place[0].uri if place else server.warehouse_uri)
        seed = partial(_seed_write_id, server, admin, database, name)
        open_transactions = _replay_transactions(admin, fixture, database, location, partitions, seed)
    return FixtureTable(database, name, location, fixture.rows, fixture, tuple(partitions), open_transactions, uri)


def check_place(admin: ThriftAdmin, database: str, name: str, uri: str) -> None:
    """Asserts that a table and all its partitions lie below a URI, by the metastore's word."""
    elsewhere = [found for found in admin.uris(database, name) if not found.startswith(f"{uri}/")]
    assert not elsewhere, f"{database}.{name} is to lie below {uri}, but {elsewhere} do not"


def set_location(server: MetastoreServer, old: str, new: str) -> None:
    """Moves a table and its partitions, as the metastore sees it."""
    query = server.server_database.query
    query(f"""UPDATE "SDS" SET "LOCATION" = replace("LOCATION", '{old}', '{new}') WHERE "LOCATION" LIKE '{old}%'""")


def parse_ddl(ddl: str) -> TableDefinition:
    """A CREATE TABLE statement in the form SHOW CREATE TABLE prints it."""
    head, _, _ = ddl.partition("ROW FORMAT SERDE")
    columns, _, partition_keys = head.partition("PARTITIONED BY")
    buckets = re.search(r"INTO (\d+) BUCKETS", head)
    bucket_columns = re.search(r"CLUSTERED BY \(([^)]*)\)", head)
    name = re.search(r"CREATE TABLE `(\w+)`", ddl)
    quoted = r"\s+'([^']+)'"
    return TableDefinition(
        database="default",
        name=name.group(1) if name else "",
        columns=_parse_columns(columns),
        partition_keys=_parse_columns(partition_keys.partition("CLUSTERED BY")[0]),
        bucket_columns=tuple(re.findall(r"\w+", bucket_columns.group(1))) if bucket_columns else (),
        buckets=int(buckets.group(1)) if buckets else -1,
        properties=dict(re.findall(r"'([^']+)'='([^']*)'", ddl.partition("TBLPROPERTIES")[2])),
        serde=re.findall("ROW FORMAT SERDE" + quoted, ddl)[0],
        input_format=re.findall("INPUTFORMAT" + quoted, ddl)[0],
        output_format=re.findall("OUTPUTFORMAT" + quoted, ddl)[0],
    )


def _parse_columns(text: str) -> dict[str, str]:
    found = re.findall(r"^  `(\w+)` (.+?)(?:,|\))\s*$", text, re.MULTILINE)
    return {name: kind.replace("`", "").replace(", ", ",") for name, kind in found}


class _Snapshot(TypedDict):
    hwm: int
    open: list[int]
    aborted: list[int]


def _snapshots(version: str) -> dict[str, _Snapshot]:
    snapshots: dict[str, _Snapshot] = json.loads((FIXTURES / f"hive-{version}" / "snapshot.json").read_text())
    return snapshots


def _partitions(location: Path, keys: int) -> list[str]:
    if keys == 0:
        return []
    return sorted(str(folder.relative_to(location)) for folder in location.glob("/".join(["*"] * keys)))


def _replay_transactions(
    admin: ThriftAdmin,
    fixture: HiveFixture,
    database: str,
    location: Path,
    partitions: Iterable[str],
    seed_write_id: Callable[[int], None],
) -> dict[int, int]:
    first = 1
    if fixture.high_water_mark >= FIRST_WRITE_ID_AFTER_CONVERSION:
        first = FIRST_WRITE_ID_AFTER_CONVERSION
        seed_write_id(first - 1)
    transactions = admin.open_transactions(fixture.high_water_mark - first + 1)
    write_ids = admin.allocate_write_ids(database, fixture.name, transactions)
    open_transactions = {}
    for transaction, write_id in sorted(write_ids.items()):
        for partition in _written(location, partitions, write_id):
            admin.lock_as_writer(transaction, database, fixture.name, partition)
        if write_id in fixture.open_write_ids:
            open_transactions[write_id] = transaction
        elif write_id in fixture.aborted_write_ids:
            admin.abort(transaction)
        else:
            admin.commit(transaction)
    return open_transactions


def _seed_write_id(server: MetastoreServer, admin: ThriftAdmin, database: str, name: str, last_used: int) -> None:
    if admin.is_hive_3:  # which does it by itself, when a table is converted
        server.server_database.query(
            "INSERT INTO NEXT_WRITE_ID (NWI_DATABASE, NWI_TABLE, NWI_NEXT)"
            f" VALUES ('{database}', '{name}', {last_used + 1})"
        )
    else:
        admin.seed_write_id(database, name, last_used)


def _written(location: Path, partitions: Iterable[str], write_id: int) -> list[str | None]:
    """The partitions that have a directory of a write id; None stands for an unpartitioned table."""
    entities: list[str | None] = [*partitions] or [None]
    folders = {entity: location / (entity or "") for entity in entities}
    return [entity for entity in entities if any(_covers(child.name, write_id) for child in folders[entity].iterdir())]


def _covers(directory: str, write_id: int) -> bool:
    if base := re.match(r"base_(\d+)", directory):
        return int(base[1]) == write_id
    delta = re.match(r"(?:delete_)?delta_(\d+)_(\d+)", directory)
    return delta is not None and int(delta[1]) <= write_id <= int(delta[2])
