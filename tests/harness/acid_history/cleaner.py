"""The product's cleaning rules at work on a history's partition, and the metastore's forgetting after it."""

from __future__ import annotations

from airflow_provider_acid.acid.write_ids import TableWriteIds, cleaner_txns
from airflow_provider_acid.compaction.cleaning_view import PartitionLook, ViewByReplaced, ViewByTransactions
from airflow_provider_acid.exceptions import RefusedError
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.acid_history.compactor import ReadyForCleaning
from tests.harness.acid_history.metastore import State
from tests.harness.acid_history.partition import Partition


class Cleaner:
    """Cleans what is ready, in the order of the write ids, as ``compaction.cleaner`` does with a metastore."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._storage = LocalStorage(str(partition.folder))
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
        view = self._view(row)
        before = PartitionLook.at(self._storage)
        if before.is_overtaken(highest):
            self._forget(view.table, highest)
            return True, f"{highest} was overtaken"
        doomed = view.doomed(before)
        left = view.left(before.without(doomed))
        if left:
            return False, f"{highest} waits for a newer one, which replaced {', '.join(left)}"
        self._storage.delete(doomed)
        self.deleted += len(doomed)
        after = PartitionLook.at(self._storage)
        words = f"{highest}: deleted {', '.join(doomed) or 'nothing'}"
        left = view.left(after)
        if left:
            return False, f"{words}; {', '.join(left)} wait"
        safe = view.highest_safe_write_id(after)
        if safe is None:
            return not self._is_hive_4, f"{words}; nothing may be forgotten"
        forgotten = self._forget(view.table, safe)
        return True, f"{words}; aborted write ids {forgotten} up to {safe} are forgotten"

    def _view(self, row: ReadyForCleaning) -> ViewByTransactions | ViewByReplaced:
        metastore = self._partition.metastore
        if not self._is_hive_4:
            table = metastore.valid_write_ids(metastore.valid_txns())
            return ViewByReplaced(row.replaced, table, row.highest_write_id)
        txns = cleaner_txns(metastore.min_open_txn, row.txn, metastore.txns(State.ABORTED))
        return ViewByTransactions(txns, metastore.valid_write_ids(txns), row.highest_write_id)

    @property
    def _is_hive_4(self) -> bool:
        return self._partition.kind.hive_version == 4

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
