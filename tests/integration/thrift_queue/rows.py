"""Looking up rows of the queue."""

from __future__ import annotations

from airflow_provider_acid.metastore.thrift_queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.values import CompactionRow


def the_row(queue: ThriftCompactionQueue, id: int) -> CompactionRow:
    row = queue.row(id)
    assert row is not None
    return row
