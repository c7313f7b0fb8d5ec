"""The sections of an ORC file's tail as messages, to be changed and packed again.

File = stripes | stripe statistics ("metadata") | footer | postscript | 1 byte postscript length. (Apache ORC
specification, "File Tail".)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_provider_acid.spark_jobs.orc_codec import CompressionKind, compress, decompress
from airflow_provider_acid.spark_jobs.orc_messages import message_class


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
        :raises CodecError: a section is damaged, or its compression is not supported.
        :raises DecodeError: a section is no message.
        """
        postscript: Any = message_class("PostScript").FromString(end[-1 - end[-1] : -1])
        kind, block_bytes = CompressionKind(postscript.compression), postscript.compressionBlockSize
        footer_start = len(end) - 1 - end[-1] - postscript.footerLength
        packed = end[footer_start : footer_start + postscript.footerLength]
        footer: Any = message_class("Footer").FromString(decompress(packed, kind, block_bytes))
        packed = end[footer_start - postscript.metadataLength : footer_start]
        return cls(postscript, footer, message_class("Metadata").FromString(decompress(packed, kind, block_bytes)))

    def packed(self) -> bytes:
        """The bytes of the tail; the postscript's lengths are found anew."""
        last: Any = message_class("PostScript")()
        last.CopyFrom(self.postscript)
        kind, block_bytes = CompressionKind(last.compression), last.compressionBlockSize
        metadata = compress(self.metadata.SerializeToString(), kind, block_bytes)
        footer = compress(self.footer.SerializeToString(), kind, block_bytes)
        last.metadataLength, last.footerLength = len(metadata), len(footer)
        end: bytes = last.SerializeToString()
        return b"".join((metadata, footer, end, bytes([len(end)])))


def stripe_bytes(stripe: Any) -> int:
    """Length of a stripe, by its ``StripeInformation``."""
    return int(stripe.indexLength + stripe.dataLength + stripe.footerLength)
