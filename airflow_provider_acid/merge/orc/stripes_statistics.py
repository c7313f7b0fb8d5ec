"""File statistics of an ORC file made of other files' stripes: merged from theirs, exactly or not at all.

Hive, Trino and Arrow skip files by these statistics, so a wrong one hides rows. Where a merged value is not certain
the whole part of its type is left out (count and presence of NULLs stay), which every reader takes as "unknown";
a part that is there without its limits would read as "nothing but NULLs". (ORC's ``ColumnStatisticsImpl.merge`` and
``RecordReaderImpl.getMin``.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, InvalidOperation
from functools import reduce
from typing import Any

from google.protobuf.message import Message

from airflow_provider_acid.merge.orc.messages import message_class

_INT64 = range(-(2**63), 2**63)
_UINT64 = range(2**64)

_DECIMAL_DIGITS = 38
_DECIMAL64_DIGITS = 18
"""Up to this precision ORC's Java library holds a sum in 64 bits."""

_EXACT = Context(prec=200)

_LOCAL = ("minimum", "maximum")
_UTC = ("minimumUtc", "maximumUtc")
_NANOSECONDS = ("minimumNanos", "maximumNanos")

_NO_NANOSECONDS = 2**31
"""Stands for the nanoseconds of a maximum that names none: above all that do."""


def merge_statistics(columns: Sequence[Sequence[Any]], types: Sequence[Any]) -> list[Message]:
    """Column statistics of a file that holds the stripes of several.

    :param columns: of each file the footer's ``statistics``, as many as there are ``types``.
    :param types: the footer's list of types, equal in all files.
    """
    return [_merge_column([file[column] for file in columns], node) for column, node in enumerate(types)]


def _merge_column(sources: Sequence[Any], node: Any) -> Message:
    merged: Any = message_class("ColumnStatistics")()
    merged.numberOfValues = sum(source.numberOfValues for source in sources)
    has_null = [source.hasNull if source.HasField("hasNull") else None for source in sources]
    if any(has_null) or None not in has_null:
        merged.hasNull = any(has_null)
    on_disk = sum(source.bytesOnDisk for source in sources)
    if all(source.HasField("bytesOnDisk") for source in sources) and on_disk in _UINT64:
        merged.bytesOnDisk = on_disk
    # A file without values says nothing about their range.
    telling = [source for source in sources if source.numberOfValues] or sources
    merge_part = _PARTS if merged.numberOfValues else dict.fromkeys(_PARTS, _the_same)
    for name, merge in merge_part.items():
        parts = [getattr(source, name) for source in telling if source.HasField(name)]
        if parts and len(parts) == len(telling):
            part = merge(parts, node)
            if part is not None:
                getattr(merged, name).CopyFrom(part)
    return merged  # type: ignore[no-any-return]


def _the_same(parts: Sequence[Any], node: Any) -> Message | None:
    """What all say of no values; pyorc ends the process where a column has not its type's part."""
    return parts[0] if all(part == parts[0] for part in parts) else None


def _have_all(parts: Sequence[Any], *names: str) -> bool:
    return all(part.HasField(name) for part in parts for name in names)


def _sum(parts: Sequence[Any], name: str, allowed: range) -> int | None:
    """None where a file's own sum did not fit any more, or this one does not."""
    total = sum(getattr(part, name) for part in parts)
    return total if _have_all(parts, name) and total in allowed else None


def _limited(message: str, parts: Sequence[Any], order: Callable[[Any], Any] | None = None) -> Any | None:
    """Statistics with the lowest minimum and the highest maximum; None where a file has not both."""
    if not _have_all(parts, *_LOCAL):
        return None
    merged: Any = message_class(message)()
    merged.minimum = min((part.minimum for part in parts), key=order)
    merged.maximum = max((part.maximum for part in parts), key=order)
    return merged


def _add_sum(parts: Sequence[Any], merged: Any) -> None:
    total = _sum(parts, "sum", _INT64)
    if total is not None:
        merged.sum = total


def _integers(parts: Sequence[Any], node: Any) -> Message | None:
    merged = _limited("IntegerStatistics", parts)
    if merged is not None:
        _add_sum(parts, merged)
    return merged


def _doubles(parts: Sequence[Any], node: Any) -> Message | None:
    """A sum of NaN is how readers learn that there are NaNs, among which limits mean nothing."""
    numbers = [getattr(part, name) for part in parts for name in (*_LOCAL, "sum")]
    if any(map(math.isnan, numbers)) or not _have_all(parts, "sum"):
        return None
    merged = _limited("DoubleStatistics", parts, _signed)
    if merged is not None:
        merged.sum = sum(part.sum for part in parts)
    return merged


def _signed(value: float) -> tuple[float, float]:
    # Java, and so Hive, orders -0.0 before 0.0.
    return value, math.copysign(1, value)


def _strings(parts: Sequence[Any], node: Any) -> Message | None:
    """Writers cut long limits: ``lowerBound`` and ``upperBound`` are not values, but nothing lies beyond them."""
    merged: Any = message_class("StringStatistics")()
    for exact, bound, choose in (("minimum", "lowerBound", min), ("maximum", "upperBound", max)):
        if any(part.HasField(exact) == part.HasField(bound) for part in parts):
            return None
        values = [getattr(part, exact if part.HasField(exact) else bound) for part in parts]
        best: bytes = choose(values)
        is_exact = any(part.HasField(exact) and getattr(part, exact) == best for part in parts)
        setattr(merged, exact if is_exact else bound, best)
    _add_sum(parts, merged)
    return merged  # type: ignore[no-any-return]


def _buckets(parts: Sequence[Any], node: Any) -> Message | None:
    merged: Any = message_class("BucketStatistics")()
    lengths = {len(part.count) for part in parts}
    counts = [sum(numbers) for numbers in zip(*(part.count for part in parts), strict=False)]
    if len(lengths) != 1 or not counts or any(count not in _UINT64 for count in counts):
        return None
    merged.count.extend(counts)
    return merged  # type: ignore[no-any-return]


def _decimals(parts: Sequence[Any], node: Any) -> Message | None:
    try:
        merged = _limited("DecimalStatistics", parts, _decimal)
        total = reduce(_EXACT.add, (_decimal(part.sum) for part in parts)) if _have_all(parts, "sum") else None
    except InvalidOperation:
        return None
    if merged is not None and total is not None and _fits(total, node):
        merged.sum = _plain(total)
    return merged


def _decimal(text: str | bytes) -> Decimal:
    # Protobuf gives bytes for a text that is no UTF-8; the zeros that an exponent stands for are written out below.
    value = _EXACT.create_decimal(text) if isinstance(text, str) else None
    if value is None or not value.is_finite() or abs(value.adjusted()) > _EXACT.prec:
        raise InvalidOperation
    return value


def _plain(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _fits(total: Decimal, node: Any) -> bool:
    digits = _DECIMAL64_DIGITS if node.precision <= _DECIMAL64_DIGITS else _DECIMAL_DIGITS
    return bool(abs(total.scaleb(node.scale, _EXACT)) < 10**digits)


def _dates(parts: Sequence[Any], node: Any) -> Message | None:
    return _limited("DateStatistics", parts)


def _binaries(parts: Sequence[Any], node: Any) -> Message | None:
    merged: Any = message_class("BinaryStatistics")()
    total = _sum(parts, "sum", _INT64)
    if total is None:
        return None
    merged.sum = total
    return merged  # type: ignore[no-any-return]


def _timestamps(parts: Sequence[Any], node: Any) -> Message | None:
    """Milliseconds, and below them nanoseconds; a limit that names none reaches over its whole millisecond."""
    given = {tuple(part.HasField(name) for name in (*_LOCAL, *_UTC, *_NANOSECONDS)) for part in parts}
    has_local, has_utc = (_have_all(parts, *pair) for pair in (_LOCAL, _UTC))
    whole = {(has_local, has_local, has_utc, has_utc)}
    if {flags[:4] for flags in given} != whole or not (has_local or has_utc):
        return None
    merged: Any = _limited("TimestampStatistics", parts) if has_local else message_class("TimestampStatistics")()
    if not has_utc:
        return None if any(any(flags[4:]) for flags in given) else merged
    lowest = min(parts, key=lambda part: (part.minimumUtc, part.minimumNanos))
    highest = max(parts, key=_latest)
    merged.minimumUtc, merged.maximumUtc = lowest.minimumUtc, highest.maximumUtc
    if lowest.HasField("minimumNanos"):
        merged.minimumNanos = lowest.minimumNanos
    if highest.HasField("maximumNanos"):
        merged.maximumNanos = highest.maximumNanos
    return merged  # type: ignore[no-any-return]


def _latest(part: Any) -> tuple[int, int]:
    return part.maximumUtc, part.maximumNanos if part.HasField("maximumNanos") else _NO_NANOSECONDS


def _collections(parts: Sequence[Any], node: Any) -> Message | None:
    merged: Any = message_class("CollectionStatistics")()
    total = _sum(parts, "totalChildren", _UINT64)
    if total is None or not _have_all(parts, "minChildren", "maxChildren"):
        return None
    merged.minChildren = min(part.minChildren for part in parts)
    merged.maxChildren = max(part.maxChildren for part in parts)
    merged.totalChildren = total
    return merged  # type: ignore[no-any-return]


_PARTS: dict[str, Callable[[Sequence[Any], Any], Message | None]] = {
    "intStatistics": _integers,
    "doubleStatistics": _doubles,
    "stringStatistics": _strings,
    "bucketStatistics": _buckets,
    "decimalStatistics": _decimals,
    "dateStatistics": _dates,
    "binaryStatistics": _binaries,
    "timestampStatistics": _timestamps,
    "collectionStatistics": _collections,
}
