"""Stripes whose rows would take too much memory at once, read in batches of rows.

``ORCFile.read_stripe`` holds a stripe twice, as ORC's library decodes it and as Arrow has it. Arrow's datasets read in
batches, but a file from its first stripe to its last. So they are shown the file with another tail, which names one
stripe only.
"""

from __future__ import annotations

import io
import weakref
from collections.abc import Generator
from contextlib import suppress
from threading import Event
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow.dataset import OrcFileFormat, Scanner

from airflow_provider_acid.merge.orc.messages import message_class
from airflow_provider_acid.merge.orc.schema import Kind
from airflow_provider_acid.merge.orc.sections import Sections, stripe_bytes

WHOLE_STRIPE_BYTES = 64 << 20
"""Most memory that the rows of a stripe may take to be read at once; see :func:`decoded_bytes`."""

BATCH_BYTES = 4 << 20
"""Memory that a batch takes, about; Arrow reads a few ahead."""

MAX_BATCH_ROWS = 65_536
"""Most rows of a batch, however little they take."""

_RELEASE_SECONDS = 30
"""How long Arrow's threads may take to let go of a file that they have read; they need microseconds."""

_VALUE_BYTES = 16
"""Of a number in ORC's vectors and in Arrow's, or of a text's places in both."""

_ASSUMED_RATIO = 16
"""Of texts to the bytes of their stripe, where no statistics say how long they are."""

_TEXTS = {
    Kind.STRING: "stringStatistics",
    Kind.VARCHAR: "stringStatistics",
    Kind.CHAR: "stringStatistics",
    Kind.BINARY: "binaryStatistics",
}


def decoded_bytes(sections: Sections, stripe: int) -> int:
    """Memory that all columns of a stripe take while they are read at once, by its statistics; about.

    :param sections: the tail of its file.
    """
    footer, of_stripes = sections.footer, sections.metadata.stripeStats
    place = footer.stripes[stripe]
    known = stripe < len(of_stripes) and len(of_stripes[stripe].colStats) == len(footer.types)
    decoded, is_guessed = 0, False
    for number, node in enumerate(footer.types):
        found = of_stripes[stripe].colStats[number] if known else None
        decoded += _VALUE_BYTES * max(place.numberOfRows, found.numberOfValues if found is not None else 0)
        if node.kind in _TEXTS:
            text: Any = getattr(found, _TEXTS[Kind(node.kind)], None)
            if text is not None and text.HasField("sum") and text.sum >= 0:
                decoded += 2 * text.sum
            else:
                is_guessed = True
    return decoded + (_ASSUMED_RATIO * place.dataLength if is_guessed else 0)


def number_bytes(rows: int, columns: int) -> int:
    """Memory that columns of numbers take while they are read at once."""
    return _VALUE_BYTES * rows * columns


def rows_of_a_batch(rows: int, in_memory_bytes: int) -> int:
    """How many of a stripe's rows are read at once; at least all of them where that takes little memory.

    :param rows: of the stripe.
    :param in_memory_bytes: what they take together.
    """
    if in_memory_bytes <= WHOLE_STRIPE_BYTES:
        return max(rows, 1)
    return max(min(rows * BATCH_BYTES // in_memory_bytes, MAX_BATCH_ROWS), 1)


def stripe_batches(
    file: BinaryIO, sections: Sections, stripe: int, columns: int, batch_rows: int
) -> Generator[pa.RecordBatch]:
    """The rows of a stripe in their order.

    :param file: held by other threads until this ends, so of nobody else.
    :param sections: its tail.
    :param columns: so many of the root's first ones.
    :raises ArrowException: the stripe cannot be read; or what the file raises.
    """
    view = _OneStripe(file, sections, stripe)
    released = Event()
    weakref.finalize(view, released.set)
    file_of_one: Any = pa.PythonFile(view, mode="r")
    fragment: Any = OrcFileFormat().make_fragment(file_of_one)
    scanner = Scanner.from_fragment(
        fragment,
        columns=[_name(column) for column in range(columns)],
        batch_size=batch_rows,
        batch_readahead=1,
        fragment_readahead=1,
        use_threads=False,
    )
    batches = scanner.to_batches()
    try:
        for batch in batches:
            if batch.num_rows:
                yield batch
    except Exception:
        released.set()  # Its traceback may hold the file.
        raise
    finally:
        # Who stops early must wait for the threads that read ahead; Arrow would wait for them while they wait for
        # Python's lock.
        view.refuse()
        with suppress(pa.ArrowException, OSError):
            for _ in batches:
                pass
        # A thread that lets go of it while Python ends would have the whole process aborted.
        del batches, scanner, fragment, file_of_one, view
        released.wait(_RELEASE_SECONDS)


def _name(column: int) -> str:
    """What a column is called here: names of a table's columns may mean something else to datasets."""
    return f"c{column}"


class _OneStripe(io.RawIOBase):
    """A file as if one of its stripes were all of it."""

    def __init__(self, file: BinaryIO, sections: Sections, stripe: int) -> None:
        super().__init__()
        self._file = file
        self._position = 0
        self._is_refused = False
        place = sections.footer.stripes[stripe]
        self._end = int(place.offset) + stripe_bytes(place)
        self._tail = _tail_of_one(sections, stripe)

    def refuse(self) -> None:
        """Let everything that is still read fail."""
        self._is_refused = True

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move."""
        size = self._end + len(self._tail)
        self._position = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: size}[whence] + offset
        return self._position

    def tell(self) -> int:
        """The position."""
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes, fewer only at the end."""
        if self._is_refused:
            raise OSError("is not read any more")
        start = self._position
        end = self._end + len(self._tail) if size is None or size < 0 else start + size
        data = self._tail[max(start - self._end, 0) : max(end - self._end, 0)]
        if start < self._end:
            self._file.seek(start)
            data = self._file.read(min(end, self._end) - start) + data
        self._position += len(data)
        return data


def _tail_of_one(sections: Sections, stripe: int) -> bytes:
    footer: Any = message_class("Footer")()
    footer.CopyFrom(sections.footer)
    for field in ("stripes", "statistics", "metadata"):
        footer.ClearField(field)
    place = sections.footer.stripes[stripe]
    footer.stripes.add().CopyFrom(place)
    footer.numberOfRows, footer.contentLength = place.numberOfRows, place.offset + stripe_bytes(place)
    root = footer.types[0]
    root.fieldNames[:] = map(_name, range(len(root.fieldNames)))
    return Sections(sections.postscript, footer, message_class("Metadata")()).packed()
