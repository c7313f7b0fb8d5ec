"""The text in which Hive keeps a request's properties (Hive's ``StringableMap``).

``n:`` and then for each of n entries ``length:key`` and ``length:value``; a length counts UTF-16 units, as Java's
``String.length()`` does, and is 0 for an empty and for a missing text alike.
"""

from __future__ import annotations

from airflow_provider_acid.exceptions import MetastoreError

_UNIT = "utf-16-le"
_UNIT_BYTES = 2


def parse_stringable_map(text: str | None) -> dict[str, str]:
    """The map behind a text; empty where there is none.

    :raises MetastoreError: the text has another form.
    """
    if not text:
        return {}
    rest = text.encode(_UNIT, "surrogatepass")
    try:
        count, rest = _number(rest)
        values = {}
        for _ in range(count):
            key, rest = _text(rest)
            values[key], rest = _text(rest)
    except (ValueError, IndexError) as error:
        raise MetastoreError(
            f"properties {text[:80]!r}", "are not in the form that Hive writes", "look at CQ_TBLPROPERTIES of the row"
        ) from error
    return values


def _number(rest: bytes) -> tuple[int, bytes]:
    digits = rest.decode(_UNIT, "replace").split(":", 1)[0]
    if not digits.isascii() or not digits.isdigit():
        raise ValueError(f"{digits[:20]!r} is no length")
    return int(digits), rest[(len(digits) + 1) * _UNIT_BYTES :]


def _text(rest: bytes) -> tuple[str, bytes]:
    length, rest = _number(rest)
    size = length * _UNIT_BYTES
    if size > len(rest):
        raise IndexError(f"{length} units are announced, {len(rest) // _UNIT_BYTES} are left")
    return rest[:size].decode(_UNIT, "surrogatepass"), rest[size:]
