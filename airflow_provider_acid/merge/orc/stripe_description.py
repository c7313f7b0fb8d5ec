"""What a file says of one of its stripes, wherever that lies: the same before and after the stripe was copied."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, BinaryIO

from airflow_provider_acid.merge.orc.messages import message_class
from airflow_provider_acid.merge.orc.sections import Sections


@dataclass(frozen=True)
class StripeDescription:
    """A stripe's description.

    :param digest: SHA-256 of its footer as it is packed, its statistics, its lengths and its number of rows.
    :param block_bytes: as large a buffer holds any of its compressed blocks, once decompressed.
    """

    digest: bytes
    block_bytes: int


def packed_footer(file: BinaryIO, sections: Sections, stripe: int) -> bytes:
    """A stripe's footer as it lies in the file.

    :param sections: the file's tail.
    """
    place = sections.footer.stripes[stripe]
    file.seek(place.offset + place.indexLength + place.dataLength)
    return file.read(place.footerLength)


def describe(sections: Sections, stripe: int, footer: bytes) -> StripeDescription:
    """Describe a stripe.

    :param sections: the tail of its file.
    :param footer: as :func:`packed_footer` reads it.
    """
    place: Any = message_class("StripeInformation")()
    place.CopyFrom(sections.footer.stripes[stripe])
    place.ClearField("offset")
    digest = hashlib.sha256()
    for part in (footer, _bytes_of(place), _bytes_of(sections.metadata.stripeStats[stripe])):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return StripeDescription(digest.digest(), sections.postscript.compressionBlockSize)


def _bytes_of(message: Any) -> bytes:
    packed: bytes = message.SerializeToString(deterministic=True)
    return packed
