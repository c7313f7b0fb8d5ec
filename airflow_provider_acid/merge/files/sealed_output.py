"""The file a merge writes: passed through to the storage, its end held back until it can be sealed.

An ORC writer writes its tail itself and knows nothing of Hive's footer keys. The end is replaced before it leaves
this process, so that no unsealed file ever exists in the warehouse and no local disk is needed.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa

from airflow_provider_acid.exceptions import StorageError, VerificationError
from airflow_provider_acid.merge.keys.acid_keys import DELETE, INSERT, UPDATE, Key, key_at
from airflow_provider_acid.merge.orc.schema import OrcType
from airflow_provider_acid.merge.orc.tail import KEY_INDEX, STATS, VERSION, reseal, stripe_rows, tail_bytes


class SealedOutput(io.RawIOBase):
    """What an ORC writer writes to. After :meth:`hold` the bytes stay in memory until :meth:`seal`."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self._held: bytearray | None = None
        self._written_bytes = 0
        self._is_abandoned = False

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any) -> int:
        """Take bytes (any buffer) from the ORC writer."""
        chunk = bytes(memoryview(data))
        if self._is_abandoned:
            return len(chunk)
        if self._held is not None:
            self._held += chunk
        else:
            self._file.write(chunk)
        self._written_bytes += len(chunk)
        return len(chunk)

    def tell(self) -> int:
        """Bytes written so far."""
        return self._written_bytes

    def abandon(self) -> None:
        """Drop what still comes: the destructors of ORC's writers write, and end the process where that fails."""
        self._is_abandoned = True

    def hold(self) -> None:
        """Keep what follows: the writer is about to write its last stripe and the tail."""
        self._held = bytearray()

    def stripe_rows(self) -> tuple[int, ...]:
        """Rows of each stripe, once the writer is closed."""
        return stripe_rows(bytes(self._held or b""))

    def seal(self, schema: OrcType, key_index: Sequence[Key], operation: int, rows: int, calendar: int) -> None:
        """Write the held end with Hive's types, footer keys and calendar.

        :param key_index: the last key of every stripe.
        :param operation: of every row.
        """
        metadata = acid_metadata(key_index, operation, rows)
        self._file.write(reseal(bytes(self._held or b""), schema, metadata, calendar))
        self._held = bytearray()

    def unseal(self) -> bytes:
        """Write the held end without the tail, and give that back."""
        end = bytes(self._held or b"")
        start = len(end) - tail_bytes(end)
        self._file.write(end[:start])
        self._held = bytearray()
        return end[start:]


@contextmanager
def sealed_output(name: str, file: BinaryIO) -> Iterator[SealedOutput]:
    """An output that takes nothing more once the block has ended.

    :param name: how errors call the file.
    :raises StorageError: the file cannot be written.
    """
    output = SealedOutput(file)
    try:
        with write_errors_named(name):
            yield output
    finally:
        output.abandon()


@contextmanager
def write_errors_named(name: str) -> Iterator[None]:
    """Turn what a file says that cannot be written into an error that names it.

    :raises StorageError: in its place.
    """
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        # Arrow adds the Python traceback to what the file said.
        reason = str(error).partition(". Detail")[0]
        raise StorageError(name, f"cannot be written ({reason})", "check free space and permissions") from error


def acid_metadata(key_index: Sequence[Key], operation: int, rows: int) -> dict[str, bytes]:
    """Hive's footer keys; readers of Hive 3 skip delete files that say they hold no deletes."""
    counts = (rows if operation == counted else 0 for counted in (INSERT, UPDATE, DELETE))
    return {
        KEY_INDEX: key_index_text(key_index).encode(),
        STATS: ",".join(map(str, counts)).encode(),
        VERSION: b"2",
    }


def key_index_text(keys: Sequence[Key]) -> str:
    """``hive.acid.key.index``: ``originalTransaction,bucket,rowId;`` per stripe."""
    return "".join(f"{write_id},{bucket},{row_id};" for write_id, bucket, row_id in keys)


class StripeKeys:
    """Remembers the key of every row after which the ORC writer may end a stripe.

    A writer looks at its stripe's size only after a whole batch of rows; it does not say when it ended one.

    :param batch_rows: rows of the writer's batch.
    :param across_calls: whether the writer fills its batches across calls, or begins a new one with each.
    """

    def __init__(self, name: str, batch_rows: int, across_calls: bool) -> None:
        self._name = name
        self._batch_rows = batch_rows
        self._across_calls = across_calls
        self._keys: dict[int, Key] = {}
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Note the rows of one call to the writer."""
        if batch.num_rows == 0:
            return
        first = self._batch_rows - (self.rows % self._batch_rows if self._across_calls else 0)
        for end in (*range(first, batch.num_rows, self._batch_rows), batch.num_rows):
            self._keys[self.rows + end] = key_at(batch, end - 1)
        self.rows += batch.num_rows

    def last_keys(self, stripe_rows: Sequence[int]) -> tuple[Key, ...]:
        """The last key of every stripe.

        :raises VerificationError: a stripe ends where none should be able to end, or rows are missing.
        """
        ends = [sum(stripe_rows[: number + 1]) for number in range(len(stripe_rows))]
        if (ends[-1] if ends else 0) != self.rows or any(end not in self._keys for end in ends):
            raise VerificationError(
                self._name,
                f"its stripes end after rows {ends}, {self.rows} rows were written",
                "report this with the versions of pyarrow and pyorc; nothing was changed",
            )
        return tuple(self._keys[end] for end in ends)
