"""Zones in which writers counted timestamps: known here, and counted in as Java does.

Java knows no rule of a zone from before 1900, and uses the present standard time for all earlier moments
(``sun.util.calendar.ZoneInfo``). The C++ library of ORC uses what the zone's file says of them. Stored values are not
touched by that; the limits in statistics are, and readers skip rows by those.
"""

from __future__ import annotations

import datetime
import io
import zoneinfo
from functools import cache

import pyorc

from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.merge.orc.tail import read_tail
from airflow_provider_acid.merge.rows.exact_rows import CONVERTERS

_YEAR_SECONDS = 31_556_952
_FIRST_COMMON_SECOND = -2_208_988_800
_DAY_MILLISECONDS = 86_400_000

FIRST_COMMON_MILLISECOND = _FIRST_COMMON_SECOND * 1000 + _DAY_MILLISECONDS
"""1900, and a day because some limits are those of local clocks."""

# Far in the past, then every year in which there could be a rule.
_MOMENTS = (-62_135_596_800, *range(_FIRST_COMMON_SECOND - 100 * _YEAR_SECONDS, _FIRST_COMMON_SECOND, _YEAR_SECONDS))


@cache
def agrees_with_java(name: str, zone: str) -> bool:
    """Whether the limits that ORC's C++ library writes for moments before 1900 are those that Java would write.

    :param name: of the file that counts in it, for errors.
    :raises UnsupportedTableError: the zone is not known here.
    """
    try:
        info = zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnsupportedTableError(
            name, f"counts timestamps in the zone {zone}, which is not known here", "compact this partition with Hive"
        ) from error
    present = datetime.datetime(2037, 1, 1, tzinfo=info)
    standard = (present.utcoffset() or datetime.timedelta()) - (present.dst() or datetime.timedelta())
    file = io.BytesIO()
    kinds = ",".join(f"c{number}:timestamp" for number in range(len(_MOMENTS)))
    with pyorc.Writer(file, f"struct<{kinds}>", timezone=info, converters=CONVERTERS) as writer:
        writer.write(tuple((moment, 0) for moment in _MOMENTS))
    limits = [column.minimum for column in read_tail(file, zone).statistics[1:]]
    return limits == [(moment + int(standard.total_seconds())) * 1000 for moment in _MOMENTS]
