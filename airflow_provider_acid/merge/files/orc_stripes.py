"""ORC files made of other files' stripes: copied as bytes under a new tail, where that is exact.

A stripe's inner offsets are relative to its start, so its bytes can move. Its statistics move with it, those of the
file are merged. Only files that agree in everything a reader takes from a file's tail may share one: types,
compression and its block size, version and writer, calendar, row index stride, user metadata; time zones and Bloom
filters of the stripes. (ORC's ``OrcFile.mergeFiles``, and stricter.) No row is decoded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError, Message

from airflow_provider_acid.exceptions import CorruptFileError, VerificationError
from airflow_provider_acid.merge.files.file_copy import CHUNK_BYTES, changed_source, digest_of
from airflow_provider_acid.merge.orc.bounds import MAGIC, check_layout
from airflow_provider_acid.merge.orc.messages import message_class
from airflow_provider_acid.merge.orc.schema import TIMESTAMPS, from_footer
from airflow_provider_acid.merge.orc.sections import Sections, stripe_bytes
from airflow_provider_acid.merge.orc.stripe_footers import bloom_filters, zone_of
from airflow_provider_acid.merge.orc.stripes_statistics import merge_statistics
from airflow_provider_acid.merge.orc.tail import read_tail_section, tail_errors_named

MAX_STATISTICS_BYTES = 12 << 20
"""Plain bytes of stripe statistics in one file that is put together; readers hold them in memory before they read a
row. No statistics have fewer than 6 bytes, so that they are not more than :data:`~.orc_bounds.MAX_STATISTICS`.
"""

_REMEDY = "restore the file from a backup or ask its writer; nothing was changed"
_REPORT = "report this with the version of protobuf; nothing was published"

OpenFile = Callable[[], AbstractContextManager[BinaryIO]]


@dataclass(frozen=True)
class StripeSource:
    """An ORC file whose stripes may be copied; not open.

    :param name: how errors call the file.
    :param open: opens it for reading.
    :param size_bytes: of the whole file.
    :param shape: what other files must have equal to share a file with it; None where it can share with none.
    :param footer: ORC's ``Footer``.
    :param stripe_statistics: ORC's ``StripeStatistics``, one of each stripe.
    :param tail_digest: of the tail's bytes.
    """

    name: str
    open: OpenFile
    size_bytes: int
    shape: bytes | None
    postscript: Any
    footer: Any
    stripe_statistics: tuple[Any, ...]
    tail_digest: bytes

    @property
    def rows(self) -> int:
        """Rows, by the footer."""
        return int(self.footer.numberOfRows)

    @property
    def stripes(self) -> int:
        """Number of stripes, by the footer."""
        return len(self.footer.stripes)


@dataclass(frozen=True)
class StripeCopy:
    """What :func:`write_stripes` wrote.

    :param stripe_digests: SHA-256 of every stripe's bytes, in order.
    :param tail_digest: SHA-256 of the tail's bytes.
    """

    size_bytes: int
    rows: int
    stripe_digests: tuple[bytes, ...]
    tail_digest: bytes


def look_at(name: str, open_file: OpenFile, ignored_metadata: frozenset[str] = frozenset()) -> StripeSource:
    """Read what is needed of a file before any stripe is copied.

    :param ignored_metadata: names of user metadata that may differ, because the caller writes them anew.
    :raises CorruptFileError: the file is not ORC, or its tail is damaged.
    :raises UnsupportedTableError: it is compressed in a way that this release does not read.
    """
    with open_file() as file:
        size = file.seek(0, 2)
        with tail_errors_named(name):
            end = read_tail_section(file, size)
            sections = Sections.of(end)
            check_layout(sections.footer, size - len(end))
            from_footer(sections.footer.types)
            stripes = _looks_of_stripes(file, sections)
    shape = _shape(sections, stripes, ignored_metadata)
    statistics = tuple(sections.metadata.stripeStats)
    return StripeSource(
        name, open_file, size, shape, sections.postscript, sections.footer, statistics, hashlib.sha256(end).digest()
    )


def groups_that_fit(sources: Iterable[StripeSource]) -> list[tuple[StripeSource, ...]]:
    """Files that may become one, in the order given; a file that fits no other is a group of its own."""
    by_shape: dict[object, list[StripeSource]] = {}
    for number, source in enumerate(sources):
        by_shape.setdefault(source.shape or number, []).append(source)
    return [group for files in by_shape.values() for group in _within_limit(files)]


def _within_limit(files: Sequence[StripeSource]) -> Iterator[tuple[StripeSource, ...]]:
    part: list[StripeSource] = []
    part_bytes = 0
    for file in files:
        size = sum(statistics.ByteSize() for statistics in file.stripe_statistics)
        if part and part_bytes + size > MAX_STATISTICS_BYTES:
            yield tuple(part)
            part, part_bytes = [], 0
        part.append(file)
        part_bytes += size
    yield tuple(part)


def write_stripes(
    sources: Sequence[StripeSource],
    output: BinaryIO,
    progress: Callable[[int], None] = lambda read_bytes: None,
    user_metadata: Mapping[str, bytes] | None = None,
) -> StripeCopy:
    """Write one file of the stripes of several that have the same shape.

    :param output: takes the file from its first byte on.
    :param progress: called with the bytes of the sources that are copied so far.
    :param user_metadata: written in place of the sources'; None keeps the first one's, which all have.
    :raises CorruptFileError: a source ends too early, or is no longer the file that was looked at.
    """
    footer = _new_footer(sources, user_metadata)
    output.write(MAGIC)
    offset, done_bytes, digests = len(MAGIC), 0, []
    for source in sources:
        with source.open() as file:
            _check_unchanged(source, file)
            for stripe in source.footer.stripes:
                digests.append(_copy_range(source.name, file, stripe.offset, stripe_bytes(stripe), output))
                footer.stripes.add().CopyFrom(stripe)
                footer.stripes[-1].offset = offset
                offset += stripe_bytes(stripe)
                progress(done_bytes + stripe.offset + stripe_bytes(stripe))
        done_bytes += source.size_bytes
        progress(done_bytes)
    footer.contentLength = offset
    metadata: Any = message_class("Metadata")()
    for source in sources:
        metadata.stripeStats.extend(source.stripe_statistics)
    end = Sections(sources[0].postscript, footer, metadata).packed()
    output.write(end)
    tail_digest = hashlib.sha256(end).digest()
    return StripeCopy(offset + len(end), footer.numberOfRows, tuple(digests), tail_digest)


def verify_stripes(name: str, file: BinaryIO, copy: StripeCopy) -> None:
    """Read a written file back and compare it with what was copied.

    :raises VerificationError: it differs.
    """
    size = file.seek(0, 2)
    try:
        end = read_tail_section(file, size)
        footer = Sections.of(end).footer
        check_layout(footer, size - len(end))
    except (DecodeError, ValueError) as error:
        raise VerificationError(name, f"cannot be read back ({error})", _REPORT) from error
    if (size, hashlib.sha256(end).digest()) != (copy.size_bytes, copy.tail_digest):
        raise VerificationError(name, "has not the tail that was written", _REPORT)
    found = tuple(_digest_range(file, stripe.offset, stripe_bytes(stripe)) for stripe in footer.stripes)
    if found != copy.stripe_digests:
        pairs = zip(found, copy.stripe_digests, strict=True)
        differing = [number for number, (here, there) in enumerate(pairs) if here != there]
        raise VerificationError(name, f"its stripes {differing} are not the sources' bytes", _REPORT)


@dataclass(frozen=True)
class _StripesLook:
    """What stripes of one file must have in common with those of another.

    :param zones: in which they count timestamps; none where there are no timestamps.
    :param filters: of each kind of stripe its Bloom filters. ORC's Java reader goes on with those of the stripe before
        where a stripe has none, so that Hive 3 would not find what they do not hold: one kind may be in a file.
    """

    zones: tuple[str, ...]
    filters: tuple[tuple[tuple[int, int], ...], ...]


def _looks_of_stripes(file: BinaryIO, sections: Sections) -> _StripesLook:
    counts_time = any(node.kind in TIMESTAMPS for node in sections.footer.types)
    zones, filters = set[str](), set[tuple[tuple[int, int], ...]]()
    for stripe in () if sections.footer.encryption else sections.footer.stripes:
        file.seek(stripe.offset + stripe.indexLength + stripe.dataLength)
        footer = sections.unpack("StripeFooter", file.read(stripe.footerLength))
        if counts_time:
            zones.add(zone_of(footer))
        filters.add(tuple(sorted(bloom_filters(footer))))
    return _StripesLook(tuple(sorted(zones)), tuple(sorted(filters or {()})))


def _shape(sections: Sections, stripes: _StripesLook, ignored_metadata: frozenset[str]) -> bytes | None:
    """Everything of a tail that is not about single stripes, their statistics or lengths; unknown fields, too."""
    source = sections.footer
    whole_statistics = len(source.statistics) == len(source.types) and all(
        column.HasField("numberOfValues") for column in source.statistics
    )
    of_stripes = [len(statistics.colStats) for statistics in sections.metadata.stripeStats]
    is_whole = whole_statistics and of_stripes == [len(source.types)] * len(source.stripes)
    if source.encryption or not is_whole or len(stripes.filters) > 1:
        return None
    footer, postscript = _copy(source), _copy(sections.postscript)
    for field in ("contentLength", "stripes", "numberOfRows", "statistics", "softwareVersion", "metadata"):
        footer.ClearField(field)
    for field in ("footerLength", "metadataLength"):
        postscript.ClearField(field)
    kept = sorted((item.name, item.value) for item in source.metadata if item.name not in ignored_metadata)
    parts = (footer.SerializeToString(deterministic=True), postscript.SerializeToString(deterministic=True))
    return repr((parts, kept, stripes)).encode()


def _copy(message: Message) -> Any:
    copied = type(message)()
    copied.CopyFrom(message)
    return copied


def _new_footer(sources: Sequence[StripeSource], user_metadata: Mapping[str, bytes] | None) -> Any:
    footer = _copy(sources[0].footer)
    for field in ("stripes", "statistics"):
        footer.ClearField(field)
    if len({source.footer.softwareVersion for source in sources}) > 1:
        footer.ClearField("softwareVersion")
    if user_metadata is not None:
        footer.ClearField("metadata")
        for name, value in user_metadata.items():
            footer.metadata.add(name=name, value=value)
    footer.headerLength = len(MAGIC)
    footer.numberOfRows = sum(source.rows for source in sources)
    footer.statistics.extend(merge_statistics([source.footer.statistics for source in sources], footer.types))
    return footer


def _check_unchanged(source: StripeSource, file: BinaryIO) -> None:
    size = file.seek(0, 2)
    try:
        digest = hashlib.sha256(read_tail_section(file, size)).digest()
    except (DecodeError, ValueError):
        digest = b""
    if (size, digest) != (source.size_bytes, source.tail_digest):
        raise changed_source(source.name, "changed while it was being compacted")


def _copy_range(name: str, file: BinaryIO, offset: int, length: int, output: BinaryIO) -> bytes:
    digest, left = hashlib.sha256(), length
    file.seek(offset)
    while left:
        chunk = file.read(min(left, CHUNK_BYTES))
        if not chunk:
            raise CorruptFileError(name, f"ends {left} bytes before the end of a stripe", _REMEDY)
        digest.update(chunk)
        output.write(chunk)
        left -= len(chunk)
    return digest.digest()


def _digest_range(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    return digest_of(file, length)
