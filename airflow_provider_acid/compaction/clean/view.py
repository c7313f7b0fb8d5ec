"""What a cleaning deletes, and what the metastore may forget after it: a partition as the Cleaner sees it.

Where the commit publishes (Hive 4), transactions tell which compactions count. Where the rename publishes (Hive 3.1),
the compaction's own list of what it replaced does; see :mod:`replaced`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from airflow_provider_acid.acid.directory import acid_directory
from airflow_provider_acid.acid.layout import partition_layout
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.names import is_hidden
from airflow_provider_acid.acid.write_ids import TableWriteIds, ValidTxnList, ValidWriteIdList, cleaner_list
from airflow_provider_acid.compaction.snapshot import list_with_base_formats
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.plan.obsolete import deletable, deletable_of_replaced, highest_safe_write_id, leftovers


@dataclass(frozen=True)
class PartitionLook:
    """What a partition holds at one moment."""

    listing: Listing
    base_formats: Mapping[str, str]

    @classmethod
    def at(cls, storage: Storage) -> PartitionLook:
        """Look now; of hidden directories only the names matter, of what is being deleted, too."""
        return cls(*list_with_base_formats(storage, into=lambda name: not is_hidden(name)))

    def without(self, paths: Collection[str]) -> PartitionLook:
        """What it will hold once these are deleted."""
        return PartitionLook(self.listing.without(paths), self.base_formats)

    def is_overtaken(self, highest_write_id: int) -> bool:
        """Whether the cleaning of a newer compaction left nothing of the write ids up to ``highest_write_id``.

        Its base alone would be refused as newer than what a view up to that write id may see.
        """
        layout = partition_layout(self.listing, self.base_formats)
        lowest = (
            *(base.write_id for base in layout.bases),
            *(delta.name.min_write_id for delta in layout.deltas),
        )
        has_originals = bool(layout.original_files or layout.original_directories)
        return not has_originals and all(write_id > highest_write_id for write_id in lowest)


class CleanersView(Protocol):
    """A partition as the cleaning of one compaction sees it."""

    @property
    def highest_write_id(self) -> int:
        """The compaction's high-water mark."""

    def obsolete(self, look: PartitionLook) -> tuple[str, ...]:
        """What is to be deleted."""

    def left(self, look: PartitionLook) -> tuple[str, ...]:
        """What the cleaning still has to wait for, by a look after the deletion or at what is to be expected of it.

        :raises NotEnoughHistoryError: for a newer compaction, of which there is a base.
        """

    def highest_safe_write_id(self, look: PartitionLook) -> int | None:
        """The highest write id the metastore may forget about, by a look after the deletion; None: nothing."""


@dataclass(frozen=True)
class ViewByTransactions:
    """On Hive 4: transactions and write ids up to the compaction's.

    :param txns: see :func:`~airflow_provider_acid.acid.write_ids.cleaner_txns`.
    """

    txns: ValidTxnList
    table: TableWriteIds
    highest_write_id: int

    def obsolete(self, look: PartitionLook) -> tuple[str, ...]:
        """What is obsolete or aborted for everybody."""
        return deletable(look.listing, _write_ids(self), self.txns, look.base_formats)

    def left(self, look: PartitionLook) -> tuple[str, ...]:
        """What a newer compaction made obsolete: its own cleaning deletes it, once its readers let it."""
        return leftovers(look.listing, self.table.full_table_name, self.highest_write_id, look.base_formats)

    def highest_safe_write_id(self, look: PartitionLook) -> int | None:
        """See :func:`~airflow_provider_acid.plan.obsolete.highest_safe_write_id`."""
        after = acid_directory(look.listing, _write_ids(self), self.txns, look.base_formats)
        return highest_safe_write_id(after, self.table.aborted, self.highest_write_id)


@dataclass(frozen=True)
class ViewByReplaced:
    """On Hive 3: write ids up to the compaction's, and of what is obsolete by them, what the compaction replaced.

    :param replaced: names of directories and files.
    """

    replaced: frozenset[str]
    table: TableWriteIds
    highest_write_id: int

    def obsolete(self, look: PartitionLook) -> tuple[str, ...]:
        """What is still obsolete or aborted of that which the compaction replaced."""
        return deletable_of_replaced(look.listing, _write_ids(self), self.replaced, look.base_formats)

    def left(self, look: PartitionLook) -> tuple[str, ...]:
        """Nothing: what else is obsolete is the next compaction's to replace, and must not hold this one up."""
        return ()

    def highest_safe_write_id(self, look: PartitionLook) -> int | None:
        """See :func:`~airflow_provider_acid.plan.obsolete.highest_safe_write_id`; obsolete ones that stay count."""
        after = acid_directory(look.listing, _write_ids(self), None, look.base_formats)
        return highest_safe_write_id(after, self.table.aborted, self.highest_write_id)


def _write_ids(view: ViewByTransactions | ViewByReplaced) -> ValidWriteIdList:
    return cleaner_list(view.table, view.highest_write_id)
