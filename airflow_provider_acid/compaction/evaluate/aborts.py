"""How many aborted transactions wrote to a partition, and how old the oldest is, found out over Thrift alone.

Hive's Initiator asks the metastore's database (TXNS joined with TXN_COMPONENTS). Over Thrift the partition's
directories tell which aborted write ids it holds, and old snapshots tell which transaction a write id belongs to.
"""

from __future__ import annotations

from bisect import bisect_left

from airflow_provider_acid.acid.directory import AcidDirectory
from airflow_provider_acid.acid.write_ids import ValidTxnList, ValidWriteIdList
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import TxnInfo, TxnState
from airflow_provider_acid.plan.thresholds import NO_ABORTS, AbortedFigures


def aborted_write_ids(directory: AcidDirectory, write_ids: ValidWriteIdList) -> frozenset[int]:
    """Aborted write ids that wrote to a partition: in directories of their own or among others in a delta.

    :param write_ids: the compactor's view that ``directory`` was made with.
    """
    # A compaction's own deltas span aborted write ids without holding their rows.
    written = [delta.name for delta in directory.deltas if not delta.name.visibility_txn_id]
    mixed = {
        write_id
        for write_id in write_ids.aborted
        if any(name.min_write_id <= write_id <= name.max_write_id for name in written)
    }
    return directory.aborted_write_ids | mixed


class AbortAges:
    """Ages of aborted transactions; asks the metastore only when a partition holds an aborted write id.

    Belongs to one evaluation: what it has learnt is kept.
    """

    def __init__(self, client: AcidMetastoreClient) -> None:
        self._client = client
        self._aborted: list[TxnInfo] | None = None
        self._now_ms = 0
        self._known: dict[tuple[str, int], float | None] = {}

    def figures(self, full_table_name: str, write_ids: frozenset[int]) -> AbortedFigures:
        """Number of aborted transactions, and the age of the one with the lowest write id.

        :param write_ids: from :func:`aborted_write_ids`.
        """
        if not write_ids:
            return NO_ABORTS
        key = full_table_name, min(write_ids)
        if key not in self._known:
            self._known[key] = self._age_seconds(*key)
        return AbortedFigures(len(write_ids), self._known[key])

    def _age_seconds(self, full_table_name: str, write_id: int) -> float | None:
        if self._aborted is None:
            self._aborted = [txn for txn in self._client.transactions() if txn.state is TxnState.ABORTED]
            self._now_ms = self._client.server_now_ms()
        aborted = self._aborted
        # "Written by a transaction up to this one" holds from the writing transaction on, so it can be bisected.
        place = bisect_left(aborted, True, key=lambda txn: self._was_written_by(txn.id, full_table_name, write_id))
        if place == len(aborted):
            return None
        started_ms = aborted[place].started_ms
        return None if started_ms is None else (self._now_ms - started_ms) / 1000

    def _was_written_by(self, last_txn_id: int, full_table_name: str, write_id: int) -> bool:
        """Whether a write id belongs to a transaction up to ``last_txn_id``: a snapshot of that moment knows it."""
        then = self._client.valid_write_ids([full_table_name], str(ValidTxnList(last_txn_id, (), ())))[0]
        return write_id <= then.high_water_mark and write_id not in then.open and write_id not in then.aborted
