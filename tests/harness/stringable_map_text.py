"""The text in which Hive keeps a request's properties, as Hive's ``StringableMap`` writes it."""

from __future__ import annotations

from collections.abc import Mapping


def stringable_map_text(values: Mapping[str, str]) -> str:
    """The text form of a map."""
    return f"{len(values)}:" + "".join(_sized(key) + _sized(value) for key, value in values.items())


def _sized(text: str) -> str:
    return f"{len(text.encode('utf-16-le', 'surrogatepass')) // 2}:{text}"
