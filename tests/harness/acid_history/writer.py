"""Hive's writers: what INSERT, DELETE, UPDATE, LOAD DATA and INSERT OVERWRITE leave in a partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import count

from tests.harness.acid_history.hive_files import (
    Event,
    acid_file,
    bucket_of,
    bucket_property,
    delete_event,
    delta_name,
    insert_event,
    make_directory,
    raw_file,
)
from tests.harness.acid_history.metastore import State
from tests.harness.acid_history.partition import Partition
from tests.harness.acid_history.steps import Oddity, Overwrite, Statement, What, Write
from tests.harness.acid_history.truth import Values
from tests.harness.acid_reader import RowId

_COPIES = ("", "_copy_1", "_copy_2", "_copy_10")


class HiveWriter:
    """Writes into a partition, and tells its truth."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def write(self, step: Write, txn: int, write_id: int) -> None:
        """All statements of a transaction."""
        statements = count()
        for statement in step.statements:
            self._write_statement(statement, txn, write_id, statements, step.oddity)

    def overwrite(self, step: Overwrite, write_id: int) -> None:
        """A new base; without a marker that a compaction made it."""
        partition = self._partition
        base = f"base_{write_id:07d}"
        partition.truth.overwrite(write_id)
        partition.wrote.add(write_id)
        make_directory(partition.folder / base)
        if step.loaded:
            self._load(base, write_id, 0, step.picks, Oddity.NONE)
        else:
            self._write_events(base, self._new_rows(write_id, 0, self._buckets(step.picks)), Oddity.NONE)

    def _write_statement(
        self, statement: Statement, txn: int, write_id: int, statements: count[int], oddity: Oddity
    ) -> None:
        number = next(statements)
        if statement.what is What.INSERT:
            self._insert(write_id, number, self._buckets(statement.picks), oddity)
        elif statement.what is What.LOAD:
            name = delta_name("delta", write_id, write_id, number)
            make_directory(self._partition.folder / name)
            self._load(name, write_id, number, statement.picks, oddity)
        elif self._partition.deleter in (None, txn):
            self._partition.deleter = txn
            victims = self._victims(write_id, statement.picks)
            self._delete(write_id, number, victims, oddity)
            if statement.what is What.UPDATE:
                # Hive 4 splits an update into two statements, Hive 3 gives both halves the same number.
                number = next(statements) if self._partition.kind.hive_version == 4 else number
                self._insert(write_id, number, [bucket_of(victim) for victim in victims], oddity)

    def _buckets(self, picks: Iterable[int]) -> list[int]:
        return [pick % self._partition.number_of_buckets for pick in picks]

    def _victims(self, write_id: int, picks: Iterable[int]) -> list[RowId]:
        committed = self._partition.metastore.committed_write_ids() | {write_id}
        # Who got his write id before others wrote does not see their rows.
        visible = sorted(row_id for row_id in self._partition.truth.rows(committed) if row_id[0] <= write_id)
        return sorted({visible[pick % len(visible)] for pick in picks}) if visible else []

    def _insert(self, write_id: int, statement: int, buckets: list[int], oddity: Oddity) -> None:
        if buckets:
            name = delta_name("delta", write_id, write_id, statement)
            make_directory(self._partition.folder / name)
            self._write_events(name, self._new_rows(write_id, statement, buckets), oddity)
            self._partition.wrote.add(write_id)

    def _new_rows(self, write_id: int, statement: int, buckets: Iterable[int]) -> dict[int, list[Event]]:
        events: dict[int, list[Event]] = defaultdict(list)
        for bucket in buckets:
            row_id = (write_id, bucket_property(bucket, statement), len(events[bucket]))
            values = self._partition.new_values()
            self._partition.truth.insert(row_id, values)
            events[bucket].append(insert_event(row_id, values))
        return events

    def _delete(self, write_id: int, statement: int, victims: list[RowId], oddity: Oddity) -> None:
        partition = self._partition
        if not victims:
            return
        events: dict[int, list[Event]] = defaultdict(list)
        is_foreign = oddity is Oddity.FOREIGN_BUCKET and partition.kind.hive_version == 3 and not partition.kind.buckets
        partition.has_foreign_deletes |= is_foreign
        for victim in victims:
            partition.truth.delete(victim, write_id)
            file = (bucket_of(victim) + 1) % partition.number_of_buckets if is_foreign else bucket_of(victim)
            events[file].append(delete_event(victim, write_id))
        name = delta_name("delete_delta", write_id, write_id, statement)
        make_directory(partition.folder / name)
        self._write_events(name, events, oddity)
        partition.wrote.add(write_id)

    def _write_events(self, directory: str, events: dict[int, list[Event]], oddity: Oddity) -> None:
        attempt = "" if self._partition.kind.hive_version == 3 else "_1" if oddity is Oddity.RETRIED else "_0"
        for bucket in range(self._partition.number_of_buckets):
            file = self._partition.folder / directory / f"bucket_{bucket:05d}{attempt}"
            if bucket in events:
                file.write_bytes(acid_file(events[bucket], self._partition.columns))
            elif oddity is Oddity.EMPTY_FILE:
                file.touch()

    def _load(self, directory: str, write_id: int, statement: int, picks: Iterable[int], oddity: Oddity) -> None:
        """Files without ACID columns; their rows are numbered by bucket in the order of the names."""
        partition = self._partition
        partition.wrote.add(write_id)
        files: dict[str, list[Values]] = defaultdict(list)
        for place, pick in enumerate(picks):
            copy = _COPIES[place // partition.number_of_buckets % len(_COPIES)]
            files[f"{pick % partition.number_of_buckets:06d}_0{copy}"].append(partition.new_values())
        numbers: dict[int, count[int]] = defaultdict(count)
        for name in sorted(files):
            bucket = int(name.partition("_")[0])
            for values in files[name]:
                partition.truth.insert((write_id, bucket_property(bucket, statement), next(numbers[bucket])), values)
            (partition.folder / directory / name).write_bytes(raw_file(files[name], partition.columns))
        if oddity is Oddity.EMPTY_FILE:
            (partition.folder / directory / "000000_0_copy_7").touch()


def write_and_commit(partition: Partition, step: Write) -> None:
    """A transaction of its own, from its beginning to its end."""
    txn = partition.metastore.open()
    partition.writers.append(txn)
    HiveWriter(partition).write(step, txn, partition.metastore.allocate(txn))
    partition.end(txn, State.COMMITTED)
