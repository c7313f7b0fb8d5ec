"""The product's cleaning rules at work on a history's partition, and the metastore's forgetting after it."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_acid.acid.directory import acid_directory
from airflow_provider_acid.acid.layout import partition_layout
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.obsolete import deletable, highest_safe_write_id, leftovers
from airflow_provider_acid.acid.write_ids import TableWriteIds, ValidTxnList, cleaner_list
from airflow_provider_acid.compaction.snapshot import read_base_formats
from airflow_provider_acid.exceptions import RefusedError
from airflow_provider_acid.filesystem import storage_for
from tests.harness.acid_history.compactor import ReadyForCleaning
from tests.harness.acid_history.metastore import TABLE, State
from tests.harness.acid_history.partition import Partition


@dataclass(frozen=True)
class _Look:
    listing: Listing
    base_formats: dict[str, str]


class Cleaner:
    """Cleans what is ready, in the order of the write ids, as ``compaction.cleaner`` does with a metastore."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._storage = storage_for(str(partition.folder))
        self.deleted = 0
        self.forgotten = 0

    def clean(self, ready: list[ReadyForCleaning]) -> str:
        """Clean, and take what is done off the list; what came of it, in words."""
        said = []
        # What stood in the way of an older compaction's row may have gone with the directories of a newer one.
        for row in sorted(ready, key=lambda row: row.highest_write_id) * 2:
            if row not in ready:
                continue
            if row.next_txn_id >= self._partition.metastore.min_open_txn:
                said.append(f"{row.highest_write_id} waits for an open transaction")
                continue
            is_done, words = self._clean_guarded(row)
            said.append(words)
            if is_done:
                ready.remove(row)
        return "; ".join(said) or "nothing is ready"

    def _clean_guarded(self, row: ReadyForCleaning) -> tuple[bool, str]:
        try:
            return self._clean(row)
        except RefusedError as error:
            return False, f"{row.highest_write_id} cannot be cleaned: {error.reason}"

    def _clean(self, row: ReadyForCleaning) -> tuple[bool, str]:
        highest = row.highest_write_id
        metastore = self._partition.metastore
        min_open = metastore.min_open_txn
        aborted = tuple(txn for txn in metastore.txns(State.ABORTED) if txn < min_open)
        txns = ValidTxnList(min_open - 1, (), aborted)
        table = metastore.valid_write_ids(txns)
        seen = txns if self._partition.kind.hive_version == 4 else None
        before = self._look()
        if _is_overtaken(before, highest):
            self._forget(table, highest)
            return True, f"{highest} was overtaken"
        doomed = deletable(before.listing, cleaner_list(table, highest), seen, before.base_formats)
        if seen is None:
            doomed = tuple(path for path in doomed if path in row.replaced)
        self._storage.delete(doomed)
        self.deleted += len(doomed)
        after = self._look()
        words = f"{highest}: deleted {', '.join(doomed) or 'nothing'}"
        left = leftovers(after.listing, TABLE, highest, after.base_formats)
        if left:
            return False, f"{words}; {', '.join(left)} wait"
        state = acid_directory(after.listing, cleaner_list(table, highest), seen, after.base_formats)
        safe = highest_safe_write_id(state, table.aborted, highest)
        if safe is None:
            return False, f"{words}; nothing may be forgotten"
        forgotten = self._forget(table, safe)
        return True, f"{words}; aborted write ids {forgotten} up to {safe} are forgotten"

    def _forget(self, table: TableWriteIds, highest: int) -> list[int]:
        """The metastore drops what it knows of aborted transactions up to a write id (``markCleaned``)."""
        metastore = self._partition.metastore
        known = set(metastore.txns(State.ABORTED))
        forgotten = [
            write_id
            for write_id in sorted(self._partition.wrote)
            if write_id <= highest and metastore.txn_of(write_id) in known
        ]
        metastore.forget(metastore.txn_of(write_id) for write_id in forgotten)
        self.forgotten += len(forgotten)
        return forgotten

    def _look(self) -> _Look:
        listing = self._storage.list()
        return _Look(listing, read_base_formats(self._storage, listing))


def _is_overtaken(look: _Look, highest: int) -> bool:
    """Whether the cleaning of a newer compaction left nothing of the write ids up to this row's."""
    layout = partition_layout(look.listing, look.base_formats)
    lowest = (*(base.write_id for base in layout.bases), *(delta.name.min_write_id for delta in layout.deltas))
    has_originals = bool(layout.original_files or layout.original_directories)
    return not has_originals and all(write_id > highest for write_id in lowest)
