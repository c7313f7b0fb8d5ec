"""Limits in a written file's statistics by which readers would miss rows are taken out.

So it is with columns of float and double that hold NaN: ORC's writers, the C++ one here and Hive's own, compare each
value with the limits so far. NaN compares false with everything, so a row group, stripe or file whose first value is
NaN gets NaN for both limits, and ``a = 1.5`` pushed down finds nothing in it; where NaN comes later, the limits do not
cover it, and ``a <> 1.5`` does not find the NaN beside 1.5 (measured: Hive 3.1.3 and 4.0.1, which skip by such limits
although the sum is NaN). A merge puts values into one row group that lay in several before, and so would hide rows
that were found. Without the part for doubles the limits are unknown to every reader, and it looks at the rows; the
count of values and the presence of NULLs stay.

No ORC writer at hand can leave the part out, so a file that needs it is written a second time: row indexes, stripe
footers and tail anew, all data as bytes. Positions in a row index count from the start of a column's stream, so they
stay true. The files of insert-only tables keep the row indexes that their own writers made: no row there moves into
another row group, so none is hidden that was found before.

So it is with a maximum of -0.0: Hive's limits put it below 0.0, to which it is equal in its rows (measured: a merge
without the 5.0 of 5.0 and -0.0 takes ``a = 0.0`` its row). No sum tells of it, so that row indexes are looked at.

Texts that readers cut lose their limits in the same way; see :meth:`~.bucket_rows.RowsOutput.verified`.

Hive 3 takes the maximum of timestamps without what is below its millisecond (ORC-611), and so does not find a row
group's last moment (measured: 00:00:00.0005). Where it is to read a file, such a maximum is the next millisecond.

Limits of texts are ordered by bytes. Hive compares what it looks for by UTF-16, where U+E000 to U+FFFF lie above what
has four bytes: by the limits of a fullwidth letter and an emoji it does not find the emoji (measured: Hive 3.1, 4.0).

Hive looks for a char as it writes one, with spaces up to its length. Trino writes them without, which is less.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError

from airflow_provider_acid.exceptions import ConfigurationError, StorageError, VerificationError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.merge.files.answers import next_attempt_path
from airflow_provider_acid.merge.files.file_copy import CHUNK_BYTES
from airflow_provider_acid.merge.files.verify import REPORT
from airflow_provider_acid.merge.orc.bounds import MAGIC
from airflow_provider_acid.merge.orc.codec import CodecError
from airflow_provider_acid.merge.orc.schema import Kind
from airflow_provider_acid.merge.orc.sections import Sections, stripe_bytes
from airflow_provider_acid.merge.orc.tail import read_tail_section

_ROW_INDEX = 6
"""``Stream.Kind`` of a column's row index."""

_PART = "doubleStatistics"
_TEXTS = "stringStatistics"
_PARTS = (_PART, _TEXTS)
_TIMES = "timestampStatistics"

_FOUR_BYTES = 0xF0
"""The least byte with which letters of four bytes begin in UTF-8; none has it elsewhere."""

_WHOLE_MILLISECOND = 1
"""``maximumNanos`` of a maximum that has nothing below its millisecond; where it is missing, there may be anything."""


def without_misleading_limits(
    storage: Storage,
    path: str,
    copied: Container[int] = (),
    others: Collection[int] = (),
    for_hive_3: bool = False,
) -> str:
    """Make sure that limits mislead no reader; where none do, only the file's tail and some row indexes are read.

    :param path: of an attempt that was just written, ``name.uuid``; removed where another takes its place.
    :param copied: numbers of the stripes that stay as they are, like those of insert-only files.
    :param others: ids of further columns, numbers or texts, that lose their limits in all other stripes.
    :param for_hive_3: whether Hive 3 is to find timestamps by their limits.
    :returns: the path of the file to go on with.
    :raises VerificationError: the written file cannot be understood.
    :raises StorageError: the second file cannot be written.
    """
    name = join(storage.location, path)
    with storage.open_input(path) as file, _errors_named(name):
        tail = Sections.of(read_tail_section(file, file.seek(0, 2)))
        stripes = [number for number in range(len(tail.footer.stripes)) if number not in copied]
        written = [tail.metadata.stripeStats[number].colStats for number in stripes]
        if len(stripes) == len(tail.footer.stripes):
            written.append(tail.footer.statistics)
        columns = frozenset(others if stripes else ()).union(*map(columns_that_mislead, written))
        columns |= _columns_by_row_groups(file, tail, stripes, for_hive_3)
        if not columns:
            return path
        rewritten = next_attempt_path(path)
        with storage.create(rewritten) as output:
            _Rewriting(file, output, tail, columns, frozenset(stripes)).run()
    # What is left of it goes with the staging directory.
    may_stay = (StorageError, ConfigurationError) if storage.rules.tasks_may_not_delete else (StorageError,)
    with suppress(*may_stay):
        storage.delete([path])
    return rewritten


@contextmanager
def _errors_named(name: str) -> Iterator[None]:
    try:
        yield
    except (CodecError, DecodeError, ValueError) as error:
        raise VerificationError(name, f"cannot be read back ({error})", REPORT) from error
    except OSError as error:
        raise StorageError(name, f"cannot be written again ({error})", "check free space and permissions") from error


def columns_that_mislead(statistics: Collection[Any]) -> frozenset[int]:
    """Ids of the columns whose limits are not certain: a NaN among the values shows in their sum.

    Nor is a maximum of -0.0: readers take it for less than 0.0, to which the value is equal. Nor are texts that Hive
    orders otherwise.
    """
    return frozenset(
        column
        for column, found in enumerate(statistics)
        if found.numberOfValues
        and (found.HasField(_PART) and not _is_certain(found.doubleStatistics) or _is_out_of_order(found))
    )


def _is_certain(part: Any) -> bool:
    numbers = ("minimum", "maximum", "sum")
    is_known = all(part.HasField(number) and not math.isnan(getattr(part, number)) for number in numbers)
    return is_known and not _is_negative_zero(part.maximum)


def _is_out_of_order(statistics: Any) -> bool:
    """Whether some text between the limits may lie outside of them by UTF-16.

    Java reads what is no UTF-8 as U+FFFD.
    """
    texts = statistics.stringStatistics
    lowest = texts.minimum if texts.HasField("minimum") else texts.lowerBound
    highest = texts.maximum if texts.HasField("maximum") else texts.upperBound
    is_low = any("\ue000" <= letter <= "\uffff" for letter in lowest.decode(errors="replace"))
    return is_low or max(highest, default=0) >= _FOUR_BYTES


def _is_negative_zero(number: float) -> bool:
    return number == 0 and math.copysign(1, number) < 0


def _columns_by_row_groups(
    file: BinaryIO, tail: Sections, stripes: Collection[int], for_hive_3: bool
) -> frozenset[int]:
    """Ids of the columns of which a row group has limits that mislead, other than by NaN.

    Those are -0.0, texts that Hive orders otherwise, chars without their spaces, and for Hive 3 what lies between two
    milliseconds. Numbers are looked at only where a stripe has 0 between its limits.
    """
    found = set[int]()
    for number in stripes:
        stripe = tail.footer.stripes[number]
        suspects = {
            column
            for column, statistics in enumerate(tail.metadata.stripeStats[number].colStats)
            if statistics.HasField(_TEXTS)
            or (for_hive_3 and statistics.HasField(_TIMES))
            or (
                statistics.HasField(_PART)
                and statistics.doubleStatistics.minimum <= 0 <= statistics.doubleStatistics.maximum
            )
        } - found
        if not suspects:
            continue
        file.seek(stripe.offset + stripe.indexLength + stripe.dataLength)
        footer = tail.unpack("StripeFooter", file.read(stripe.footerLength))
        position = stripe.offset
        for stream in footer.streams:
            if stream.kind == _ROW_INDEX and stream.column in suspects:
                file.seek(position)
                index = tail.unpack("RowIndex", file.read(stream.length))
                node = tail.footer.types[stream.column]
                length = node.maximumLength if node.kind == Kind.CHAR else 0
                if any(_misleads(entry.statistics, length) for entry in index.entry):
                    found.add(stream.column)
            position += stream.length
    return frozenset(found)


def _misleads(statistics: Any, characters: int) -> bool:
    """Whether Hive misses rows by the limits of a row group.

    :param characters: of a char with its spaces; 0 for all other types.
    """
    texts, is_number = statistics.stringStatistics, _is_negative_zero(statistics.doubleStatistics.maximum)
    is_bare = texts.HasField("maximum") and len(texts.maximum.decode(errors="replace")) < characters
    return is_number or is_bare or _is_out_of_order(statistics) or _is_cut(statistics.timestampStatistics)


def _is_cut(times: Any) -> bool:
    """Whether Hive 3 would take the maximum for less than it is."""
    return bool(times.HasField("maximumUtc") and times.maximumNanos != _WHOLE_MILLISECOND)


@dataclass(frozen=True)
class _Rewriting:
    """One file written again.

    :param tail: of ``file``; becomes that of ``output``.
    :param columns: ids of those that lose their limits.
    :param stripes: numbers of those in which they do.
    """

    file: BinaryIO
    output: BinaryIO
    tail: Sections
    columns: frozenset[int]
    stripes: frozenset[int]

    def run(self) -> None:
        stripes = self.tail.footer.stripes
        was_end = stripes[-1].offset + stripe_bytes(stripes[-1])
        self.output.write(MAGIC)
        offset = len(MAGIC)
        for number, stripe in enumerate(stripes):
            if number in self.stripes:
                self._rewrite_stripe(stripe)
            else:
                self._copy(stripe.offset, stripe_bytes(stripe))
            stripe.offset = offset
            offset += stripe_bytes(stripe)
        self.tail.footer.contentLength += offset - was_end
        self._clear(self.tail.footer.statistics)
        for number in self.stripes:
            self._clear(self.tail.metadata.stripeStats[number].colStats)
        self.output.write(self.tail.packed())

    def _rewrite_stripe(self, stripe: Any) -> None:
        data_start = stripe.offset + stripe.indexLength
        footer = self.tail.unpack("StripeFooter", self._read(data_start + stripe.dataLength, stripe.footerLength))
        index = self._rewrite_index(self._read(stripe.offset, stripe.indexLength), footer)
        packed_footer = self.tail.pack(footer)
        self.output.write(index)
        self._copy(data_start, stripe.dataLength)
        self.output.write(packed_footer)
        stripe.indexLength, stripe.footerLength = len(index), len(packed_footer)
        if sum(stream.length for stream in footer.streams) != stripe.indexLength + stripe.dataLength:
            raise ValueError("the streams of a stripe are not as long as it is")

    def _rewrite_index(self, index: bytes, footer: Any) -> bytes:
        """The streams before a stripe's data; ``footer`` gets their lengths. They lie in the order it lists them."""
        parts: list[bytes] = []
        position = 0
        for stream in footer.streams:
            if position >= len(index):
                break
            part = index[position : position + stream.length]
            position += stream.length
            if stream.kind == _ROW_INDEX and stream.column in self.columns:
                part = self._rewrite_row_index(part)
                stream.length = len(part)
            parts.append(part)
        if position != len(index):
            raise ValueError("the indexes of a stripe do not end where its data begins")
        return b"".join(parts)

    def _rewrite_row_index(self, packed: bytes) -> bytes:
        index = self.tail.unpack("RowIndex", packed)
        for entry in index.entry:
            _clear_limits(entry.statistics)
        return self.tail.pack(index)

    def _clear(self, statistics: Any) -> None:
        for column, found in enumerate(statistics):
            if column in self.columns:
                _clear_limits(found)

    def _read(self, start: int, length: int) -> bytes:
        self.file.seek(start)
        data = self.file.read(length)
        if len(data) != length:
            raise ValueError("it ends too early")
        return data

    def _copy(self, start: int, length: int) -> None:
        for position in range(start, start + length, CHUNK_BYTES):
            self.output.write(self._read(position, min(CHUNK_BYTES, start + length - position)))


def _clear_limits(statistics: Any) -> None:
    for part in _PARTS:
        statistics.ClearField(part)
    times = statistics.timestampStatistics
    if _is_cut(times):
        times.maximumUtc, times.maximumNanos = times.maximumUtc + 1, _WHOLE_MILLISECOND
