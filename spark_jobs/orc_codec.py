"""ORC's chunked compression, as far as a file's tail and its stripe footers need it.

A compressed section is a run of chunks, each with a 3-byte little-endian header: length times two, plus one when the
chunk is stored as it is. (Apache ORC specification, "Compression".)
"""

from __future__ import annotations

import zlib
from enum import IntEnum

import pyarrow as pa

_HEADER_BYTES = 3


class CodecError(ValueError):
    """A section that cannot be decompressed; the caller knows the file's name and says it."""


class CompressionKind(IntEnum):
    """ORC's compression kinds, by their number in the postscript."""

    NONE = 0
    ZLIB = 1
    SNAPPY = 2
    LZO = 3
    LZ4 = 4
    ZSTD = 5


def decompress(section: bytes, kind: CompressionKind, block_bytes: int) -> bytes:
    """The plain bytes of a section.

    :param block_bytes: the file's compression block size, the most a chunk may hold.
    :raises CodecError: the section is damaged, or its compression kind is not supported.
    """
    if kind is CompressionKind.NONE:
        return section
    plain, position = bytearray(), 0
    while position < len(section):
        header = int.from_bytes(section[position : position + _HEADER_BYTES], "little")
        length, stored = header >> 1, header & 1
        position += _HEADER_BYTES
        chunk = section[position : position + length]
        if len(chunk) != length:
            raise CodecError(f"a chunk of {length} bytes ends after {len(chunk)}")
        plain += chunk if stored else _decompress_chunk(chunk, kind, block_bytes)
        position += length
    return bytes(plain)


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
    try:
        if kind is CompressionKind.ZLIB:
            return zlib.decompress(chunk, wbits=-zlib.MAX_WBITS)
        if kind is CompressionKind.SNAPPY:
            return bytes(pa.Codec("snappy").decompress(chunk, _snappy_length(chunk, block_bytes), asbytes=True))
        if kind is CompressionKind.ZSTD:
            return bytes(pa.CompressedInputStream(pa.BufferReader(chunk), "zstd").read())
        if kind is CompressionKind.LZ4:
            return _lz4(chunk, block_bytes)
    except (zlib.error, pa.ArrowException, OSError, IndexError) as error:
        raise CodecError(f"a {kind.name.lower()} chunk is damaged ({error})") from error
    raise CodecError(f"its compression {kind.name.lower()} is not supported")


def _snappy_length(chunk: bytes, block_bytes: int) -> int:
    length, shift = 0, 0
    for byte in chunk:
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    if length > block_bytes:
        raise CodecError(f"a snappy chunk announces {length} bytes, the block size is {block_bytes}")
    return length


def _lz4(chunk: bytes, block_bytes: int) -> bytes:
    """Decode an LZ4 block; Arrow's decoder wants the plain size in advance, which ORC does not store."""
    plain, position = bytearray(), 0
    while True:
        token = chunk[position]
        literals, position = _lz4_length(chunk, position + 1, token >> 4)
        plain += chunk[position : position + literals]
        position += literals
        if position >= len(chunk):
            return bytes(plain)
        distance = int.from_bytes(chunk[position : position + 2], "little")
        match, position = _lz4_length(chunk, position + 2, token & 15)
        if not 0 < distance <= len(plain) or len(plain) > block_bytes:
            raise CodecError("an lz4 chunk refers outside itself")
        for _ in range(match + 4):
            plain.append(plain[-distance])


def _lz4_length(chunk: bytes, position: int, nibble: int) -> tuple[int, int]:
    length = nibble
    if nibble == 15:
        while True:
            byte = chunk[position]
            position += 1
            length += byte
            if byte != 255:
                break
    return length, position
