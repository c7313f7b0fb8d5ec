"""What a look at the tails of a bucket's files says about their merge, before anything is written."""

from __future__ import annotations

import datetime
import io
import re
import zoneinfo
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import zip_longest

import pyorc

from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.merge.files.source_files import SourceReader, open_in_order
from airflow_provider_acid.merge.orc.schema import (
    TIMESTAMPS,
    Kind,
    OrcType,
    can_be_written,
    can_become,
    common_text,
)
from airflow_provider_acid.merge.orc.tail import read_tail
from airflow_provider_acid.merge.rows.arrow_rows import UTC_NAMES, is_exact
from airflow_provider_acid.merge.rows.exact_rows import CONVERTERS
from airflow_provider_acid.plan.plan import BucketPlan

# 1582-10-15, the first day on which the hybrid and the proleptic Gregorian calendar agree
_GREGORIAN_DAY = -141_427
_DAY_MILLISECONDS = 86_400_000

_CALENDAR_PROLEPTIC = 2


@dataclass
class Sources:
    """What is known of all files with rows together.

    :param schema: of the output.
    :param is_exact_in_arrow: whether Arrow holds every value exactly, as far as statistics tell.
    :param values: how many values each of the table's first columns holds; None where the footers cannot say it.
    :param zones: in which timestamps are counted; one at most.
    :param converted: names of the columns that keep the files' type, so that readers convert each value.
    :param for_hive_3: whether Hive 3 is to read the output.
    """

    schema: OrcType
    rows: int = 0
    is_exact_in_arrow: bool = True
    values: tuple[int, ...] | None = ()
    zones: frozenset[str] = frozenset()
    calendars: frozenset[int] = frozenset()
    depends_on_calendar: bool = False
    largest_stripe_bytes: int = 0
    converted: frozenset[str] = frozenset()
    for_hive_3: bool = False

    @property
    def zone(self) -> str:
        """The zone in which sources and output count their timestamps."""
        return next(iter(self.zones - UTC_NAMES), "UTC")


def look_at(storage: Storage, bucket: BucketPlan, schema: OrcType, for_hive_3: bool) -> Sources:
    """Read every source's tail before anything is written; refuse here what can be known here.

    :param schema: of a file with the table's columns.
    :param for_hive_3: see :class:`_Columns`.
    :raises CorruptFileError: a source is damaged, or is not the planned one.
    :raises UnsupportedTableError: the sources cannot be brought together exactly.
    """
    found, columns = Sources(schema, for_hive_3=for_hive_3), _Columns(schema.children[5], for_hive_3)
    for _, reader in open_in_order(storage, bucket.rows):
        if reader is None:
            continue
        columns.add(reader.name, reader.row_type)
        found.rows += reader.tail.rows
        sizes = [found.largest_stripe_bytes, *(stripe.size_bytes for stripe in reader.tail.stripes)]
        found.largest_stripe_bytes = max(sizes)
        found.values = _sum(found.values, reader.values_by_column())
        found.is_exact_in_arrow &= is_exact(reader, columns.row)
        found.calendars |= {reader.tail.calendar}
        found.depends_on_calendar |= _depends_on_calendar(reader)
        found.zones |= _zones(reader, found.zones)
    found.schema = replace(schema, children=(*schema.children[:5], columns.row))
    found.converted = columns.converted
    if len(found.calendars) > 1 and found.depends_on_calendar:
        raise UnsupportedTableError(
            join(storage.location, f"bucket {bucket.bucket}"),
            "holds dates before 1582-10-15 in files of different calendars (footers of Hive 3 and Hive 4)",
            "compact this partition with Hive 4",
        )
    return found


def _sum(one: tuple[int, ...] | None, other: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if one is None or other is None:
        return None
    return tuple(map(sum, zip_longest(one, other, fillvalue=0)))


def _zones(reader: SourceReader, others: frozenset[str]) -> frozenset[str]:
    if not reader.has_values(TIMESTAMPS):
        return frozenset()
    zones = frozenset("UTC" if zone in UTC_NAMES else zone for zone in reader.writer_time_zones())
    if "" in zones or len(zones | others) > 1:
        raise UnsupportedTableError(
            reader.name,
            f"counts timestamps in the zones {sorted(zones)}, files before it in {sorted(others)}",
            "compact this partition with Hive",
        )
    for zone in zones - UTC_NAMES:
        _check_zone(reader, zone)
    return zones


def _check_zone(reader: SourceReader, zone: str) -> None:
    """The limits of timestamps, by which readers skip rows, must be those that Java counts."""
    earliest = [found.minimum for found in reader.ranges(TIMESTAMPS)]
    is_early = any(minimum is None or minimum < FIRST_COMMON_MILLISECOND for minimum in earliest)
    if not agrees_with_java(reader.name, zone) and is_early:
        raise UnsupportedTableError(
            reader.name,
            f"holds timestamps before 1900 counted in the zone {zone}, whose limits ORC's writers would get wrong",
            "compact this partition with Hive, or write it anew (INSERT OVERWRITE)",
        )


def _depends_on_calendar(reader: SourceReader) -> bool:
    ranges = ((Kind.DATE, _GREGORIAN_DAY), (Kind.TIMESTAMP, (_GREGORIAN_DAY + 1) * _DAY_MILLISECONDS))
    return any(
        found.minimum is None or found.minimum < first for kind, first in ranges for found in reader.ranges((kind,))
    )


def output_calendar(calendars: Iterable[int]) -> int:
    """The calendar that a file made of these files' rows says it was written in.

    Where they differ no value depends on them; Hive 4's own choice is then as good as any.
    """
    found = set(calendars)
    return found.pop() if len(found) == 1 else _CALENDAR_PROLEPTIC


# Names that Hive gave to columns before it wrote their own; ORC's readers then go by position (SchemaEvolution).
_NO_NAME = re.compile(r"_col[0-9]+")


@dataclass
class _Columns:
    """The columns of a file that holds the rows of some others, by position.

    They are the table's, as long as every value can become one of them exactly. Where none can, the files' own type
    stays, and readers go on to convert it as they did before; so do texts, which they cut to the table's length.

    :param table: the table's columns.
    :param for_hive_3: whether Hive 3 is to read what it read before. It finds columns by their exact names, and reads
        a float in a column that is double now by its shortest text; Hive 4 and Trino do neither.
    """

    table: OrcType
    for_hive_3: bool
    _kept: dict[int, OrcType] = field(default_factory=dict)
    _most: int = 0
    """Columns that a file before has."""

    @property
    def row(self) -> OrcType:
        """Those of a file that holds the rows of all that were added."""
        children = tuple(self._kept.get(place, column) for place, column in enumerate(self.table.children))
        return replace(self.table, children=children)

    @property
    def converted(self) -> frozenset[str]:
        """Names of the columns that are not of the table's type."""
        return frozenset(
            self.table.names[place] for place in self._kept if self.row.children[place] != self.table.children[place]
        )

    def add(self, name: str, row_type: OrcType) -> None:
        """See to it that a file's rows can be among them.

        :param name: the file, for errors.
        :param row_type: the file's columns.
        :raises UnsupportedTableError: a column cannot, engines disagree on which it is, or the file has more columns
            than the table.
        """
        if len(row_type.children) > len(self.table.children):
            raise UnsupportedTableError(
                name,
                f"has {len(row_type.children)} columns, the table has {len(self.table.children)}",
                "compact this partition with Hive",
            )
        if self.for_hive_3 and not all(map(_NO_NAME.fullmatch, row_type.names)):
            _check_names(name, row_type, self.table)
        for place, (was, becomes) in enumerate(zip(row_type.children, self.table.children, strict=False)):
            if (
                place not in self._kept
                and can_become(was, becomes)
                and not (self.for_hive_3 and _grows_a_float(was, becomes))
            ):
                continue
            self._kept[place] = self._beside_others(name, place, was)
        self._most = max(self._most, len(row_type.children))

    def _beside_others(self, name: str, place: int, was: OrcType) -> OrcType:
        becomes = self.table.children[place]
        before = self._kept.get(place, becomes) if place < self._most else was
        found = was if was == before else common_text(was, before)
        if found is None or not can_be_written(found):
            others = "" if before in (was, becomes) else f", files before it as {before}"
            raise UnsupportedTableError(
                name,
                f"has column {self.table.names[place]} as {was}{others}, the table has {becomes}, and this release "
                "cannot bring that together exactly",
                "compact this partition with Hive",
            )
        return found


def _grows_a_float(was: OrcType, becomes: OrcType) -> bool:
    if (was.kind, becomes.kind) == (Kind.FLOAT, Kind.DOUBLE):
        return True
    return any(map(_grows_a_float, was.children, becomes.children))


def _check_names(name: str, row_type: OrcType, target: OrcType) -> None:
    for was, becomes in zip(row_type.names, target.names, strict=False):
        if was != becomes:
            raise UnsupportedTableError(
                name,
                f"has a column {was} where the table has {becomes}; Hive 3 finds columns by name and reads NULL where "
                "none fits, other engines go by position, so that no merged file could be read as before by both",
                "write the partition anew (INSERT OVERWRITE) with the columns as they are now, or rename them back",
            )


_YEAR_SECONDS = 31_556_952
_FIRST_COMMON_SECOND = -2_208_988_800

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
