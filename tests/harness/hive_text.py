"""Values as Hive's command line prints them."""

from __future__ import annotations

import re
import struct
from datetime import datetime, timedelta
from decimal import Decimal

from pyorc.converters import ORCConverter
from pyorc.enums import TypeKind


class TimestampText(ORCConverter):
    """Timestamps as text, because Python's own end at microseconds."""

    @staticmethod
    def from_orc(seconds: int, nanoseconds: int, timezone: object) -> str:
        whole = datetime(1970, 1, 1) + timedelta(seconds=seconds)
        fraction = f"{nanoseconds:09d}".rstrip("0")
        return f"{whole:%Y-%m-%d %H:%M:%S}{'.' + fraction if fraction else ''}"

    @staticmethod
    def to_orc(obj: object, timezone: object) -> tuple[int, int]:
        raise NotImplementedError("this reader does not write")


CONVERTERS: dict[TypeKind, type[ORCConverter]] = {TypeKind.TIMESTAMP: TimestampText}


def hive_text(value: object, kind: str) -> object:
    """A value of a Hive type as the fixtures' ``rows/*.json`` hold it: text, or JSON's own for complex types."""
    if value is None or kind.startswith(("array", "map", "struct")):
        return value
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_text(value, single=kind == "float")
    if isinstance(value, Decimal):
        return _decimal_text(value, kind)
    if kind.startswith("char"):
        return str(value).ljust(_numbers(kind)[0])
    return str(value)


def java_text(value: float, *, single: bool) -> str:
    """A number as Java's ``Double.toString`` or ``Float.toString`` prints it."""
    digits = next(text for text in (f"{value:.{n}e}" for n in range(17)) if _same(float(text), value, single))
    mantissa, exponent = digits.split("e")
    if value == 0 or -3 <= int(exponent) < 7:
        plain = f"{Decimal(digits):f}"
        return plain if "." in plain else f"{plain}.0"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _same(one: float, other: float, single: bool) -> bool:
    return struct.pack("<f", one) == struct.pack("<f", other) if single else one == other


def _decimal_text(value: Decimal, kind: str) -> str:
    _, scale = _numbers(kind)
    return f"{value:.{scale}f}"


def _numbers(kind: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", kind)]
