"""Write ids as the cleanings of many rows see them, asked of the metastore for each table once where that is enough."""

from __future__ import annotations

from airflow_provider_acid.acid.write_ids import TableWriteIds, ValidTxnList, cleaner_txns
from airflow_provider_acid.compaction.clean.wait import Horizon
from airflow_provider_acid.exceptions import MetastoreError
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow


class WriteIdsOfMany:
    """The write ids of tables up to a compaction's own transaction (Hive 4).

    Those up to an earlier transaction serve a later one's cleaning, too, where all up to its high-water mark had ended
    by then: what has ended does not change, so the later view is the same up to there.
    """

    def __init__(self, client: AcidMetastoreClient, horizon: Horizon) -> None:
        self._client = client
        self._horizon = horizon
        self._known: dict[str, list[tuple[int, TableWriteIds]]] = {}

    def txns(self, row: CompactionRow) -> ValidTxnList:
        """The transactions that a row's cleaning counts."""
        return cleaner_txns(self._horizon.min_open_txn, _own_txn(row), self._horizon.aborted_txns)

    def of(self, row: CompactionRow) -> TableWriteIds:
        """Those of a row's table, right up to the row's high-water mark.

        :raises MetastoreError: the row has none.
        """
        name, highest, own_txn = row.entity.full_table_name, highest_write_id(row), _own_txn(row)
        known = self._known.setdefault(name, [])
        for txn, write_ids in reversed(known):
            if txn <= own_txn and _tells_all(write_ids, highest):
                return write_ids
        (asked,) = self._client.valid_write_ids([name], str(self.txns(row)))
        known.append((own_txn, asked))
        return asked


def _tells_all(write_ids: TableWriteIds, highest_write_id: int) -> bool:
    """Whether all write ids up to one had ended."""
    return write_ids.high_water_mark >= highest_write_id < min(write_ids.open, default=highest_write_id + 1)


def highest_write_id(row: CompactionRow) -> int:
    """A row's high-water mark.

    :raises MetastoreError: none was recorded.
    """
    if not row.highest_write_id:
        raise MetastoreError(
            f"compaction request {row.id} of {row.entity}",
            "is ready for cleaning, but no highest write id was recorded",
            "compare COMPACTION_QUEUE in the metastore's database before anything is deleted",
        )
    return row.highest_write_id


def _own_txn(row: CompactionRow) -> int:
    """The compaction's transaction; where the server does not tell it, the highest there was at its commit."""
    newest = row.txn_id or row.next_txn_id
    assert newest is not None, f"{row} is not committed"
    return newest
