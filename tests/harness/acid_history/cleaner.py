"""The product's Cleaner at work on a history's partition and its metastore."""

from __future__ import annotations

from airflow_provider_acid.compaction.clean import cleaner
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from tests.harness.acid_history.metastore import ENTITY
from tests.harness.acid_history.partition import Partition


class Cleaner:
    """Cleans what is ready; nobody waits for anything."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.deleted = 0
        self.cleaned = 0

    def clean(self) -> str:
        """Clean; what came of it, in words.

        :raises AssertionError: an error that nobody foresaw.
        """
        partition = self._partition
        own = cleaner.Cleaner(partition.client, partition.queue, partition.settings, sleep=lambda seconds: None)
        done = own.clean([ENTITY])
        self.deleted += sum(len(one.deleted) for one in done)
        self.cleaned += sum(one.state is CleaningState.CLEANED for one in done)
        words = "; ".join(f"request {one.request_id}: {one.state.value}, {one.message}" for one in done)
        assert "nobody foresaw" not in words, words
        return words or "nothing is ready"
