"""What a file's tail must be like before anything in it is believed, allocated or given to a library.

Whoever may write into a table may write any tail. Lengths, counts and places are compared with the file and with the
limits here; ORC's C++ library, which reads the same bytes, takes most of them as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow_provider_acid.merge.orc.messages import message_class

MAGIC = b"ORC"

MAX_TAIL_BYTES = 64 << 20
"""Most bytes of a tail, or of a stripe's footer, as they lie in the file: they are read whole."""

MAX_STRIPES = 1 << 18
"""Most stripes of a file: 1 GiB of stripes of 4 KiB, the smallest that any writer makes by itself."""

MAX_TYPES = 1 << 16
"""Most columns of a file with all that is nested in them; the metastore's databases have no room for so many."""

MAX_STATISTICS = 1 << 21
"""Most column statistics of a file: 1,000 columns and 2,000 stripes. Each takes some 100 bytes of memory or more."""

MAX_STRIPE_ROWS = (1 << 31) - 1
"""Most rows of a stripe: the most that Java's writer can be told (``orc.stripe.row.count``)."""

_MAX_FILE_ROWS = (1 << 63) - 1
_MAX_USER_METADATA = 1 << 16


def footer_of(plain: bytes) -> Any:
    """A ``Footer``; its entries are counted before memory is taken for them.

    :raises DecodeError: it is no message.
    :raises ValueError: it has more entries than a file may have, or a text is none.
    """
    parts: Any = message_class("FooterParts").FromString(plain)
    for what, found, most in (
        ("stripes", parts.stripes, MAX_STRIPES),
        ("types", parts.types, MAX_TYPES),
        ("column statistics", parts.statistics, MAX_TYPES),
        ("entries of user metadata", parts.metadata, _MAX_USER_METADATA),
    ):
        if len(found) > most:
            raise ValueError(f"it has {len(found)} {what}, {most} at most are read")
    footer: Any = message_class("Footer").FromString(plain)
    _check_texts([footer.softwareVersion, *(item.name for item in footer.metadata)])
    for node in footer.types:
        _check_texts(node.fieldNames)
    return footer


def metadata_of(plain: bytes) -> Any:
    """A ``Metadata``; its entries are counted before memory is taken for them.

    :raises DecodeError: it is no message.
    :raises ValueError: it has more statistics than a file may have.
    """
    parts: Any = message_class("MetadataParts").FromString(plain)
    of_stripe: Any = message_class("StripeStatisticsParts")
    count = len(parts.stripeStats)
    if count <= MAX_STRIPES:
        count += sum(len(of_stripe.FromString(stripe).colStats) for stripe in parts.stripeStats)
    if count > MAX_STATISTICS or len(parts.stripeStats) > MAX_STRIPES:
        raise ValueError(f"it has more than {MAX_STATISTICS} statistics of stripes, so many are not read")
    return message_class("Metadata").FromString(plain)


def check_layout(footer: Any, data_end: int) -> None:
    """Check that stripes follow each other inside the file, and that their rows are the file's.

    :param footer: ORC's ``Footer``.
    :param data_end: where the file's tail begins.
    :raises ValueError: they do not.
    """
    end = len(MAGIC)
    for stripe in footer.stripes:
        if stripe.offset < end:
            raise ValueError("a stripe begins before the one before it ends")
        end = stripe.offset + stripe.indexLength + stripe.dataLength + stripe.footerLength
        if end > data_end:
            raise ValueError("a stripe reaches behind the end of the data")
        if not 0 < stripe.footerLength <= MAX_TAIL_BYTES:
            raise ValueError(f"a stripe's footer has {stripe.footerLength} bytes, not 1 to {MAX_TAIL_BYTES}")
        if stripe.numberOfRows > MAX_STRIPE_ROWS:
            raise ValueError(f"a stripe has {stripe.numberOfRows} rows, {MAX_STRIPE_ROWS} at most are possible")
    rows = sum(stripe.numberOfRows for stripe in footer.stripes)
    if rows != footer.numberOfRows:
        raise ValueError(f"its stripes have {rows} rows, its footer says {footer.numberOfRows}")
    if any(column.numberOfValues > _MAX_FILE_ROWS for column in footer.statistics):
        raise ValueError("its statistics count more values than a file can hold")


def _check_texts(texts: Iterable[str | bytes]) -> None:
    """Protobuf gives bytes for a text that is no UTF-8."""
    if any(isinstance(text, bytes) for text in texts):
        raise ValueError("a text in its footer is not UTF-8")
