"""Files taken over byte by byte, one or several into one, with a proof that the written file holds just that."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from airflow_provider_acid.exceptions import CorruptFileError, VerificationError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.merge.files.answers import Progress
from airflow_provider_acid.plan.plan import SourceFile

CHUNK_BYTES = 1 << 20
"""How much of a file is in memory at once."""

CACHED_BYTES = 1 << 18
"""The same of two files that are compared on this machine: what is read stays in the processor's cache that long."""

_LINE_END = b"\n"


@dataclass(frozen=True)
class Segment:
    """A run of bytes of a written file: its length and SHA-256, taken where the bytes came from."""

    size_bytes: int
    digest: bytes


def copy_whole(
    storage: Storage, sources: Sequence[SourceFile], output: BinaryIO, progress: Progress, *, end_lines: bool = False
) -> tuple[Segment, ...]:
    """Write the sources one after the other.

    :param end_lines: give a source a line end where it has none and another source follows.
    :raises CorruptFileError: a source is not the file that was planned.
    """
    segments: list[Segment] = []
    done_bytes = 0
    for number, source in enumerate(sources):
        segment, last = _copy(storage, source, output, progress, done_bytes)
        segments.append(segment)
        done_bytes += source.size_bytes
        if end_lines and last not in (b"", _LINE_END) and number < len(sources) - 1:
            output.write(_LINE_END)
            segments.append(Segment(len(_LINE_END), hashlib.sha256(_LINE_END).digest()))
    return tuple(segments)


def _copy(
    storage: Storage, source: SourceFile, output: BinaryIO, progress: Progress, before_bytes: int
) -> tuple[Segment, bytes]:
    """The copied segment, and its last byte."""
    digest, size, last = hashlib.sha256(), 0, b""
    with storage.open_input(source.path) as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            output.write(chunk)
            size, last = size + len(chunk), chunk[-1:]
            progress(before_bytes + min(size, source.size_bytes))
    check_size(join(storage.location, source.path), size, source.size_bytes)
    return Segment(size, digest.digest()), last


def check_size(name: str, size_bytes: int, planned_bytes: int) -> None:
    """Check that a source has the size it was planned with.

    :raises CorruptFileError: it has not.
    """
    if size_bytes != planned_bytes:
        raise changed_source(name, f"has {size_bytes} bytes, it had {planned_bytes} when the compaction was planned")


def changed_source(name: str, reason: str) -> CorruptFileError:
    """The error for a source that is not the file it was."""
    return CorruptFileError(name, reason, "find out what changes files of a transactional table; then compact again")


def verify_segments(name: str, file: BinaryIO, segments: Sequence[Segment]) -> int:
    """Read a written file back and compare it with its sources.

    :return: its size in bytes.
    :raises VerificationError: it does not hold exactly the segments.
    """
    for number, segment in enumerate(segments):
        if digest_of(file, segment.size_bytes) != segment.digest:
            raise _differs(name, f"its part {number + 1} of {len(segments)} does not hold its source's bytes")
    if file.read(1):
        raise _differs(name, "is longer than its sources")
    return sum(segment.size_bytes for segment in segments)


def digest_of(file: BinaryIO, size_bytes: int) -> bytes:
    """SHA-256 of the next bytes of a file, or of those that are left of it."""
    digest, left = hashlib.sha256(), size_bytes
    while left and (chunk := file.read(min(left, CHUNK_BYTES))):
        digest.update(chunk)
        left -= len(chunk)
    return digest.digest()


def holds_same(one: BinaryIO, other: BinaryIO, size_bytes: int) -> bool:
    """Whether the next bytes of both files are there, and the same."""
    left = size_bytes
    while left:
        chunk = one.read(min(left, CACHED_BYTES))
        if not chunk or chunk != other.read(len(chunk)):
            return False
        left -= len(chunk)
    return True


def _differs(name: str, reason: str) -> VerificationError:
    return VerificationError(name, reason, "check the storage; nothing was published")
