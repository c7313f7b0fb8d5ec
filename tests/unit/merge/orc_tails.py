"""Tails of ORC files taken apart and put together again, for tests that need files no writer at hand makes."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from airflow_provider_acid.merge.orc.codec import CompressionKind, compress, decompress
from airflow_provider_acid.merge.orc.messages import message_class


class Tail:
    """The tail of a file's content."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        postscript: Any = message_class("PostScript").FromString(content[-1 - content[-1] : -1])
        self.postscript = postscript
        length = 1 + content[-1] + self.postscript.footerLength + self.postscript.metadataLength
        self.end = content[-length:]
        start = len(content) - length
        self.metadata: Any = self.unpacked("Metadata", start, self.postscript.metadataLength)
        start += self.postscript.metadataLength
        self.footer: Any = self.unpacked("Footer", start, self.postscript.footerLength)

    def statistics(self) -> list[Message]:
        return [_without_bytes_on_disk(column) for column in self.footer.statistics]

    def stripe_statistics(self) -> list[Message]:
        return list(self.metadata.stripeStats)

    def with_footer(self, **fields: Any) -> bytes:
        """The file with other values in its footer."""
        for name, value in fields.items():
            setattr(self.footer, name, value)
        return self.sealed()

    def with_postscript(self, **fields: Any) -> bytes:
        """The file with other values in its postscript."""
        for name, value in fields.items():
            setattr(self.postscript, name, value)
        return self.sealed()

    def with_version(self, *version: int) -> bytes:
        """The file with another version of the format in its postscript."""
        self.postscript.version[:] = version
        return self.sealed()

    def with_unknown_footer_field(self, number: int, value: int) -> bytes:
        """The file with a footer field that is not declared here."""
        self.footer.MergeFromString(
            bytes([number << 3 & 0x7F | 0x80, number >> 4, value] if number > 15 else [number << 3, value])
        )
        return self.sealed()

    def without_statistics(self) -> bytes:
        """The file without column statistics."""
        self.footer.ClearField("statistics")
        return self.sealed()

    def sealed(self) -> bytes:
        """The file with this tail."""
        kind, block_bytes = CompressionKind(self.postscript.compression), self.postscript.compressionBlockSize
        metadata = compress(self.metadata.SerializeToString(), kind, block_bytes)
        footer = compress(self.footer.SerializeToString(), kind, block_bytes)
        self.postscript.metadataLength, self.postscript.footerLength = len(metadata), len(footer)
        last: bytes = self.postscript.SerializeToString()
        return self.content[: -len(self.end)] + metadata + footer + last + bytes([len(last)])

    def unpacked(self, message: str, start: int, length: int) -> Any:
        """A section of the file as a message."""
        packed = self.content[start : start + length]
        kind = CompressionKind(self.postscript.compression)
        return message_class(message).FromString(decompress(packed, kind, self.postscript.compressionBlockSize))


def _without_bytes_on_disk(column: Any) -> Message:
    # Streams begin anew with every stripe, so files written in one go have other numbers of bytes.
    copied: Any = type(column)()
    copied.CopyFrom(column)
    copied.ClearField("bytesOnDisk")
    return copied  # type: ignore[no-any-return]
