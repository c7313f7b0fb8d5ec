"""Streaming writers: one delta for a batch of transactions, whose file grows as they commit or abort."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness.acid_history.hive_files import (
    GARBAGE,
    Event,
    acid_file,
    bucket_property,
    delta_name,
    insert_event,
    make_directory,
    write_side_file,
)
from tests.harness.acid_history.metastore import State
from tests.harness.acid_history.partition import Partition
from tests.harness.acid_history.steps import Stream


@dataclass
class _Batch:
    directory: Path
    columns: dict[str, str]
    halted: bool
    write_ids: dict[int, int]
    """By transaction, in their order."""
    events: dict[int, dict[int, list[Event]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    """By write id and bucket."""


class Streams:
    """The streaming writers of a partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._batches: list[_Batch] = []

    def open(self, step: Stream, write_ids: dict[int, int]) -> None:
        """A batch begins; nothing of it is committed yet.

        :param write_ids: by transaction.
        """
        partition = self._partition
        ids = sorted(write_ids.values())
        directory = partition.folder / delta_name("delta", ids[0], ids[-1])
        batch = _Batch(directory, dict(partition.columns), step.halted, dict(sorted(write_ids.items())))
        for write_id in ids:
            partition.wrote.add(write_id)
            for pick in step.picks:
                bucket = (pick + write_id) % partition.number_of_buckets
                row_id = (write_id, bucket_property(bucket, 0), len(batch.events[write_id][bucket]))
                values = partition.new_values()
                partition.truth.insert(row_id, values)
                batch.events[write_id][bucket].append(insert_event(row_id, values))
        make_directory(directory)
        self._batches.append(batch)
        self._write(batch)

    def next_open(self, txn: int) -> int:
        """The transaction whose turn it is, where ``txn`` belongs to a batch."""
        for batch in self._batches:
            if txn in batch.write_ids:
                return min(txn for txn in batch.write_ids if self._is_open(txn))
        return txn

    def ended(self, txn: int) -> None:
        """A transaction has just ended: where it is a batch's, its rows become part of the files."""
        for batch in self._batches:
            if txn in batch.write_ids:
                self._write(batch)

    def _is_open(self, txn: int) -> bool:
        return self._partition.metastore.state(txn) is State.OPEN

    def _write(self, batch: _Batch) -> None:
        flushed = [write_id for txn, write_id in batch.write_ids.items() if not self._is_open(txn)]
        buckets: dict[int, list[Event]] = defaultdict(list)
        for write_id in flushed:
            for bucket, events in batch.events[write_id].items():
                buckets[bucket] += events
        is_closed = len(flushed) == len(batch.write_ids)
        for bucket, events in buckets.items():
            content = acid_file(events, batch.columns)
            file = batch.directory / f"bucket_{bucket:05d}"
            if is_closed and not batch.halted:
                file.write_bytes(content)
                file.with_name(f"{file.name}_flush_length").unlink(missing_ok=True)
            else:
                file.write_bytes(content + GARBAGE)
                write_side_file(file, (3, len(content)))
