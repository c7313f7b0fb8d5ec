"""Delete events: read, checked, and routed to the bucket of the row they delete.

Hive 3 wrote deletes of unbucketed tables into files of other numbers than their rows', and its minor compaction wrote
every delete into every file. So an event belongs to the bucket inside the row, never to that of the file's name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_acid.exceptions import CorruptFileError, UnsupportedTableError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.merge.files.source_files import KEY_FIELDS, SourceReader, open_source
from airflow_provider_acid.merge.keys.acid_keys import (
    DAMAGED,
    DELETE,
    Visibility,
    check_ids,
    check_operation,
    value_of,
    writers_of,
)
from airflow_provider_acid.plan.plan import BucketPlan, CompactionPlan, OutputKind


def events_of_bucket(
    storage: Storage, plan: CompactionPlan, bucket: BucketPlan, visibility: Visibility
) -> Iterator[tuple[SourceReader, pa.RecordBatch]]:
    """Ids of every delete event, valid or not, of a bucket's rows; with the file they are in.

    :raises CorruptFileError: a file is damaged, holds an event that is no delete, or one of another bucket.
    :raises UnsupportedTableError: a bucket property is not of Hive 3's form, or no output of a minor would take a valid
        event.
    """
    takers = _takers(plan, bucket)
    for source in bucket.deletes:
        with open_source(storage, source) as reader:
            if reader is None:
                continue
            for batch in _batches(reader):
                check_operation(reader.name, batch, DELETE)
                check_ids(reader.name, batch)
                writers = writers_of(batch.column("bucket"))
                if takers is not None:
                    valid = writers.filter(visibility.valid(batch.column("currentTransaction")))
                    _check_taken(reader.name, map(value_of, pc.unique(valid)), takers[source.path], plan.bucketed)
                found = batch.filter(pc.equal(writers, pa.scalar(bucket.bucket, writers.type)))
                del batch, writers
                yield reader, found
                # Else the pool would keep what was freed, batch after batch, beside the millions that are collected.
                pa.default_memory_pool().release_unused()


def _batches(reader: SourceReader) -> Iterator[pa.RecordBatch]:
    for stripe in range(len(reader.tail.stripes)):
        yield from reader.read_batches(stripe, KEY_FIELDS)


def _takers(plan: CompactionPlan, bucket: BucketPlan) -> Mapping[str, Collection[int]] | None:
    """The buckets that each of the files is read for; None where events of others have no row to delete.

    That is so where deletes are applied and any file may hold any bucket's: buckets without rows are not planned.
    """
    if bucket.output is OutputKind.ROWS and not plan.bucketed:
        return None
    takers: dict[str, set[int]] = defaultdict(set)
    for other in plan.buckets:
        for file in other.deletes:
            takers[file.path].add(other.bucket)
    return takers


def _check_taken(name: str, writers: Iterable[int], takers: Collection[int], bucketed: bool) -> None:
    lost = sorted(set(writers) - set(takers))
    if not lost:
        return
    if bucketed:
        reason = f"holds deletes of rows of bucket {lost[0]}, where only those of {sorted(takers)} can be"
        raise CorruptFileError(name, reason, DAMAGED)
    # Two transactions may delete one row (no conflict on Hive 3.1), and a major of the first take a bucket's last row.
    # Not dropped: readers of an older snapshot may read a base before that, and need the second's event.
    raise UnsupportedTableError(
        name,
        f"holds deletes of rows of bucket {lost[0]}, which has no rows any more, and so no file that a minor would put "
        "them into",
        "compact this partition as a major; the next one that is due does it, too",
    )
