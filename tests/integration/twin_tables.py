"""Tables with two committed results of one range of write ids, and rounds of housekeeping that find them.

They are made as Hive's metastore makes them when it dies after a compaction's commit: the same again, in a later
transaction, beside the first.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyorc

from airflow_provider_acid.acid.names import DeltaName, parse_directory_name
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.housekeep.housekeeping import Housekeeper
from airflow_provider_acid.compaction.housekeep.report import Chore, HousekeepingReport, Stuck, StuckKind
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.plan.plan import CompactionType
from tests.integration.compaction_site import AcidTable, Site, due
from tests.unit.merge.acid_files import Event

AT_ONCE = 0.001
VALUES = [2, 3, 4, 5]
"""Of five rows, of which one is deleted."""

REPAIRED, REPORTED = True, False


@dataclass(frozen=True)
class Twins:
    """A table of whose range 1 to 4 there are two deltas and two delete deltas.

    :param older: the transaction whose results were made first.
    """

    table: AcidTable
    older: int
    newer: int

    def name(self, txn_id: int, kind: str = "delta") -> str:
        return f"{kind}_0000001_0000004_v{txn_id:07d}"

    def folder(self, txn_id: int, kind: str = "delta") -> Path:
        return self.table.folder() / self.name(txn_id, kind)

    def result(self, txn_id: int) -> str:
        """How messages call what a transaction made."""
        return f"{self.name(txn_id)} with {self.name(txn_id, 'delete_delta')}"

    def kept(self, txn_id: int) -> list[str]:
        """All directories, where nothing but that stays."""
        return [self.name(txn_id, kind) for kind in ("delete_delta", "delta")]

    @property
    def all(self) -> list[str]:
        return [self.name(txn, kind) for kind in ("delete_delta", "delta") for txn in (self.older, self.newer)]

    def read(self) -> list[int]:
        """What readers get.

        :raises AssertionError: a row comes twice.
        """
        return sorted(int(str(row.values["v"])) for row in self.table.site.read("t", {"v": "bigint"}, ()))


def second_txn(site: Site, end: Callable[[int], None] | None = None) -> int:
    """A later compaction's transaction, committed unless told otherwise."""
    txn = site.client.open_compaction_txn("another compaction")
    (end or site.client.commit)(txn)
    return txn


def copy_as(table: AcidTable, name: str, txn_id: int) -> None:
    shutil.copytree(table.folder() / name, table.folder() / f"{name.partition('_v')[0]}_v{txn_id:07d}")


def compacted(site: Site, *, clean: bool = True) -> AcidTable:
    table = site.table()
    table.insert(1, 2)
    table.insert(3)
    table.insert(4, 5)
    table.write().delete((1, 0)).commit()
    assert site.compact(due(table.entity(), type=CompactionType.MINOR)).state is OutcomeState.COMPACTED
    if clean:
        assert [cleaning.state for cleaning in site.clean(table.entity())] == [CleaningState.CLEANED]
    return table


def results(table: AcidTable) -> list[str]:
    return [name for name in table.visible() if "_v" in name]


def txn_of(name: str) -> int:
    parsed = parse_directory_name(name)
    assert isinstance(parsed, DeltaName)
    return parsed.visibility_txn_id


def sweep(site: Site, repair: bool, client: AcidMetastoreClient | None = None) -> HousekeepingReport:
    settings = replace(site.settings, transaction_timeout_seconds=AT_ONCE, minor_lock_wait_seconds=2)
    keeper = Housekeeper(
        client or site.client, site.queue, settings, forgotten_seconds=0, max_partitions=10, repair_twins=repair
    )
    return keeper.sweep(TableSelection.of([f"{site.database}.*"]))


def removed(report: HousekeepingReport) -> list[str]:
    return [deed.message.partition(":")[0] for deed in report.deeds if deed.chore is Chore.TWIN_REMOVED]


def stuck(report: HousekeepingReport) -> list[Stuck]:
    return [item for item in report.stuck if item.kind in (StuckKind.TWINS, StuckKind.PROBLEM)]


def events_of(file: Path) -> list[Event]:
    with file.open("rb") as opened:
        return list(pyorc.Reader(opened))


def rewrite(folder: Path, events: Sequence[Event]) -> None:
    """The folder's file with other rows."""
    (file,) = folder.glob("bucket_*")
    with file.open("rb") as opened:
        schema = str(pyorc.Reader(opened).schema)
    with file.open("wb") as output, pyorc.Writer(output, schema) as writer:
        writer.writerows(list(events))


def make_twins(site: Site, *, clean: bool = True) -> Twins:
    """:param clean: whether what was compacted is cleaned."""
    table = compacted(site, clean=clean)
    made = results(table)
    newer = second_txn(site)
    for name in made:
        copy_as(table, name, newer)
    found = Twins(table, txn_of(made[0]), newer)
    assert results(table) == found.all
    return found
