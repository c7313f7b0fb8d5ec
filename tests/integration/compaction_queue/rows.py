"""Looking up rows of the queue."""

from __future__ import annotations

from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.values import CompactionRow

WORKER = "airflow-acid:0123456789ab:0000@worker-1"
OTHER_WORKER = "airflow-acid:0123456789ab:0001@worker-2"
"""Named as this package names its workers: an unknown one would make a Hive 3.1 metastore count as unsafe."""


def the_row(queue: CompactionQueue, id: int) -> CompactionRow:
    row = queue.row(id)
    assert row is not None
    return row
