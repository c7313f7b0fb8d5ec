"""The sections of an ORC file's tail as messages, to be changed and packed again.

File = stripes | stripe statistics ("metadata") | footer | postscript | 1 byte postscript length. (Apache ORC
specification, "File Tail".)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_provider_acid.merge.orc.bounds import footer_of, metadata_of
from airflow_provider_acid.merge.orc.codec import CompressionKind, compress, compression_of, decompress
from airflow_provider_acid.merge.orc.messages import message_class


@dataclass(frozen=True)
class Sections:
    """A tail, decoded: ORC's ``PostScript``, ``Footer`` and ``Metadata``."""

    postscript: Any
    footer: Any
    metadata: Any

    @classmethod
    def of(cls, end: bytes) -> Sections:
        """Decode a file's tail.

        :param end: the last bytes of the file, at least its whole tail.
        :raises CodecError: a section is damaged or too large, or its compression is not supported.
        :raises DecodeError: a section is no message.
        :raises ValueError: a section holds more than a file may; see :mod:`~.orc_bounds`.
        """
        postscript: Any = message_class("PostScript").FromString(end[-1 - end[-1] : -1])
        footer_start = len(end) - 1 - end[-1] - postscript.footerLength
        footer = _plain(postscript, end[footer_start : footer_start + postscript.footerLength])
        metadata = _plain(postscript, end[footer_start - postscript.metadataLength : footer_start])
        return cls(postscript, footer_of(footer), metadata_of(metadata))

    @property
    def compression(self) -> CompressionKind:
        """Of all sections."""
        return CompressionKind(self.postscript.compression)

    def unpack(self, message: str, section: bytes) -> Any:
        """A section of the file's stripes as a message.

        :param message: ORC's name of it, e.g. ``StripeFooter``.
        :raises CodecError: the section is damaged.
        :raises DecodeError: it is no message.
        """
        return message_class(message).FromString(_plain(self.postscript, section))

    def pack(self, message: Any) -> bytes:
        """A message as a section of this file."""
        return compress(message.SerializeToString(), self.compression, self.postscript.compressionBlockSize)

    def packed(self) -> bytes:
        """The bytes of the tail; the postscript's lengths are found anew."""
        last: Any = message_class("PostScript")()
        last.CopyFrom(self.postscript)
        metadata, footer = self.pack(self.metadata), self.pack(self.footer)
        last.metadataLength, last.footerLength = len(metadata), len(footer)
        end: bytes = last.SerializeToString()
        return b"".join((metadata, footer, end, bytes([len(end)])))


def _plain(postscript: Any, section: bytes) -> bytes:
    block_bytes = postscript.compressionBlockSize
    return decompress(section, compression_of(postscript.compression, block_bytes), block_bytes)


def stripe_bytes(stripe: Any) -> int:
    """Length of a stripe, by its ``StripeInformation``."""
    return int(stripe.indexLength + stripe.dataLength + stripe.footerLength)
