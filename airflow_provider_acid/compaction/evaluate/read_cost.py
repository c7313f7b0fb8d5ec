"""What a partition's deltas cost every query that reads all of it: the order in which partitions are compacted.

Hive reads a bucket of each base or delta on its own, and for each of them loads the delete events of that bucket from
every delete delta (``OrcRawRecordMerger``, ``VectorizedOrcAcidRowBatchReader.ColumnizedDeleteEventRegistry``). So with
D directories that hold rows, and the opening of a file counted as the reading of so many bytes::

    read cost = OPENING_BYTES * (files of insert deltas + D * files of delete deltas) + D * bytes of delete deltas

The rows of a base, or of an insert delta, cost nothing: they are read after a compaction as well. So a partition
that is a base alone costs 0, and one that was compacted does.
"""

from __future__ import annotations

from collections.abc import Iterable

from airflow_provider_acid.acid.directory import AcidDirectory, DeltaDirectory
from airflow_provider_acid.acid.names import is_flush_length

OPENING_BYTES = 4 * 1024 * 1024
"""What the opening of a file costs, in bytes that could be read instead: Spark's ``files.openCostInBytes``."""


def read_cost_bytes(directory: AcidDirectory) -> int:
    """What readers pay for the deltas, in bytes; see the formula above.

    :param directory: the partition as a compactor sees it.
    """
    base_files = len(directory.base.files) if directory.base else len(directory.originals)
    insert_deltas, delete_deltas = directory.insert_deltas, directory.delete_deltas
    row_directories = bool(base_files) + len(insert_deltas)
    deletes_bytes = sum([delta.size_bytes for delta in delete_deltas])
    openings = _files(insert_deltas) + row_directories * _files(delete_deltas)
    return OPENING_BYTES * openings + row_directories * deletes_bytes


def _files(deltas: Iterable[DeltaDirectory]) -> int:
    return sum([not is_flush_length(file.name) for delta in deltas for file in delta.files])
