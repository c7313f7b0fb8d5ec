"""ORC's chunked compression, as far as a file's tail and its stripe footers need it.

A compressed section is a run of chunks, each with a 3-byte little-endian header: length times two, plus one when the
chunk is stored as it is. (Apache ORC specification, "Compression".)
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import TypeVar

import pyarrow as pa

_Bytes = TypeVar("_Bytes", bytes, bytearray)

_HEADER_BYTES = 3

MIN_BLOCK_BYTES = 1024
"""Least bytes of a block: in smaller ones a large section would take minutes, and no writer uses them by itself."""

MAX_BLOCK_BYTES = (1 << 23) - 1
"""Most bytes of a block: a chunk's header has 23 bits for a length, and ORC's writers refuse more (``OutStream``)."""

MAX_SECTION_BYTES = 64 << 20
"""Most plain bytes of a section that is held whole: a footer, stripe statistics, a stripe's footer, a row index."""

_MAX_CHUNKS = MAX_SECTION_BYTES // MIN_BLOCK_BYTES

_MAX_SNAPPY_LENGTH_BYTES = 5


class CodecError(ValueError):
    """A section that cannot be decompressed; the caller knows the file's name and says it."""


class UnknownCompressionError(CodecError):
    """A compression that this release does not read; the file may be whole."""


class CompressionKind(IntEnum):
    """ORC's compression kinds, by their number in the postscript."""

    NONE = 0
    ZLIB = 1
    SNAPPY = 2
    LZO = 3
    LZ4 = 4
    ZSTD = 5


def compression_of(number: int, block_bytes: int) -> CompressionKind:
    """The compression that a postscript names.

    :param block_bytes: the postscript's compression block size.
    :raises CodecError: it is not supported, or the size of its blocks is none.
    """
    if number not in _READ:
        named = {kind.value: kind.name.lower() for kind in CompressionKind}.get(number, f"number {number}")
        raise UnknownCompressionError(f"its compression {named} is not supported")
    kind = CompressionKind(number)
    # Java's writer names no size where it does not compress.
    least = 0 if kind is CompressionKind.NONE else MIN_BLOCK_BYTES
    if not least <= block_bytes <= MAX_BLOCK_BYTES:
        raise CodecError(f"its blocks have {block_bytes} bytes, not {least} to {MAX_BLOCK_BYTES}")
    return kind


def decompress(section: bytes, kind: CompressionKind, block_bytes: int) -> bytes:
    """The plain bytes of a section.

    Nothing is decompressed further than a block, or the section's :data:`MAX_SECTION_BYTES`, may reach.

    :param block_bytes: the file's compression block size, the most a chunk may hold.
    :raises CodecError: the section is damaged or too large, or its compression kind is not supported.
    """
    compression_of(kind, block_bytes)
    if kind is CompressionKind.NONE:
        return _within_limit(section)
    plain, position, chunks = bytearray(), 0, 0
    while position < len(section):
        header = int.from_bytes(section[position : position + _HEADER_BYTES], "little")
        length, stored = header >> 1, header & 1
        position += _HEADER_BYTES
        chunk = section[position : position + length]
        if len(chunk) != length:
            raise CodecError(f"a chunk of {length} bytes ends after {len(chunk)}")
        found = chunk if stored else _decompress_chunk(chunk, kind, block_bytes)
        if len(found) > block_bytes:
            raise CodecError(f"a chunk holds more than the block size of {block_bytes} bytes")
        plain += found
        position, chunks = position + length, chunks + 1
        _within_limit(plain)
        if chunks > _MAX_CHUNKS:
            raise CodecError(f"a section has more than {_MAX_CHUNKS} chunks")
    return bytes(plain)


def _within_limit(plain: _Bytes) -> _Bytes:
    if len(plain) > MAX_SECTION_BYTES:
        raise CodecError(f"a section of its tail has more than {MAX_SECTION_BYTES} bytes")
    return plain


def compress(plain: bytes, kind: CompressionKind, block_bytes: int) -> bytes:
    """A section that :func:`decompress`, Hive and Trino read back as ``plain``."""
    if kind is CompressionKind.NONE:
        return plain
    section = bytearray()
    for start in range(0, len(plain), block_bytes):
        block = plain[start : start + block_bytes]
        packed = _compress_chunk(block, kind)
        stored = len(packed) >= len(block)
        chunk = block if stored else packed
        section += (len(chunk) << 1 | stored).to_bytes(_HEADER_BYTES, "little") + chunk
    return bytes(section)


def _compress_chunk(block: bytes, kind: CompressionKind) -> bytes:
    if kind is CompressionKind.ZLIB:
        deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        return deflate.compress(block) + deflate.flush()
    codec = {
        CompressionKind.SNAPPY: pa.Codec("snappy"),
        CompressionKind.LZ4: pa.Codec("lz4_raw"),
        CompressionKind.ZSTD: pa.Codec("zstd"),
    }[kind]
    return bytes(codec.compress(block, asbytes=True))


def _decompress_chunk(chunk: bytes, kind: CompressionKind, block_bytes: int) -> bytes:
    """The chunk's bytes, or so many that they are more than a block."""
    try:
        return _READ[kind](chunk, block_bytes)
    except (zlib.error, pa.ArrowException, OSError, IndexError) as error:
        raise CodecError(f"a {kind.name.lower()} chunk is damaged ({error})") from error


def _zlib(chunk: bytes, block_bytes: int) -> bytes:
    inflate = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    plain = inflate.decompress(chunk, block_bytes + 1)
    if not inflate.eof and len(plain) <= block_bytes:
        raise CodecError("a zlib chunk is damaged (it has no end)")
    return plain


def _zstd(chunk: bytes, block_bytes: int) -> bytes:
    return bytes(pa.CompressedInputStream(pa.BufferReader(chunk), "zstd").read(block_bytes + 1))


def _snappy(chunk: bytes, block_bytes: int) -> bytes:
    length = 0
    for place, byte in enumerate(chunk[:_MAX_SNAPPY_LENGTH_BYTES]):
        length |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    if length > block_bytes:
        raise CodecError(f"a snappy chunk announces {length} bytes, the block size is {block_bytes}")
    return bytes(pa.Codec("snappy").decompress(chunk, length, asbytes=True))


def _lz4(chunk: bytes, block_bytes: int) -> bytes:
    """Decode an LZ4 block; Arrow's decoder wants the plain size in advance, which ORC does not store."""
    plain, position = bytearray(), 0
    while True:
        token = chunk[position]
        literals, position = _lz4_length(chunk, position + 1, token >> 4)
        if position + literals > len(chunk):
            raise CodecError("an lz4 chunk is damaged (its literals end too early)")
        plain += chunk[position : position + literals]
        position += literals
        if position >= len(chunk):
            return bytes(plain)
        distance = int.from_bytes(chunk[position : position + 2], "little")
        match, position = _lz4_length(chunk, position + 2, token & 15)
        length = match + 4
        if not 0 < distance <= len(plain) or len(plain) + length > block_bytes:
            raise CodecError("an lz4 chunk refers outside itself")
        repeated = plain[-distance:] * (length // distance + 1) if length > distance else plain[-distance:]
        plain += repeated[:length]


def _lz4_length(chunk: bytes, position: int, nibble: int) -> tuple[int, int]:
    length = nibble
    if nibble == 15:
        end = position
        while chunk[end] == 255:
            end += 1
        length += 255 * (end - position) + chunk[end]
        position = end + 1
    return length, position


_READ: dict[int, Callable[[bytes, int], bytes]] = {
    CompressionKind.NONE: lambda chunk, block_bytes: chunk,
    CompressionKind.ZLIB: _zlib,
    CompressionKind.SNAPPY: _snappy,
    CompressionKind.LZ4: _lz4,
    CompressionKind.ZSTD: _zstd,
}
