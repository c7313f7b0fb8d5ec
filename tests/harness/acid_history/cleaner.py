"""The product's Cleaner at work on a history's partition and its metastore."""

from __future__ import annotations

from typing import cast

from airflow_provider_acid.acid.hive import HIVE_4
from airflow_provider_acid.compaction.clean import cleaner
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.settings import CleaningLockAction, CompactionSettings
from airflow_provider_acid.metastore.hive4.queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.queue import CompactionQueue
from tests.harness.acid_history.looks import WatchedStorages
from tests.harness.acid_history.metastore import ENTITY
from tests.harness.acid_history.partition import Partition
from tests.harness.acid_history.server import Hive3Queue


class Cleaner:
    """Cleans what is ready; nobody waits for anything."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._queue = _queue(partition)
        beside = CleaningLockAction.DELETE if partition.kind.cleans_beside_readers else CleaningLockAction.BY_VERSION
        self._settings = CompactionSettings(
            storages=WatchedStorages(looks=partition.looks),
            cleaner_lock_timeout_action=beside,
            cleaner_lock_wait_seconds=0,
            minor_lock_wait_seconds=0,
            readers_honour_visibility=False,
        )
        self.deleted = 0
        self.cleaned = 0

    def clean(self) -> str:
        """Clean; what came of it, in words.

        :raises AssertionError: an error that nobody foresaw.
        """
        client = self._partition.client
        done = cleaner.Cleaner(client, self._queue, self._settings, sleep=lambda seconds: None).clean([ENTITY])
        self.deleted += sum(len(one.deleted) for one in done)
        self.cleaned += sum(one.state is CleaningState.CLEANED for one in done)
        words = "; ".join(f"request {one.request_id}: {one.state.value}, {one.message}" for one in done)
        assert "nobody foresaw" not in words, words
        return words or "nothing is ready"


def _queue(partition: Partition) -> CompactionQueue:
    if partition.kind.hive_version == 4:
        return ThriftCompactionQueue(partition.client, HIVE_4)
    return cast("CompactionQueue", Hive3Queue(partition.metastore, partition.server))
