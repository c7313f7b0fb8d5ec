"""What a look at the tails of a bucket's files says about their merge, before anything is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.merge.files.source_files import SourceReader, open_in_order
from airflow_provider_acid.merge.orc.schema import TIMESTAMPS, Kind, OrcType
from airflow_provider_acid.merge.rows.arrow_rows import UTC_NAMES, is_exact
from airflow_provider_acid.merge.rows.column_changes import check_columns
from airflow_provider_acid.merge.rows.time_zones import FIRST_COMMON_MILLISECOND, agrees_with_java
from airflow_provider_acid.plan.plan import BucketPlan

# 1582-10-15, the first day on which the hybrid and the proleptic Gregorian calendar agree
_GREGORIAN_DAY = -141_427
_DAY_MILLISECONDS = 86_400_000

_CALENDAR_PROLEPTIC = 2


@dataclass
class Sources:
    """What is known of all files with rows together.

    :param is_exact_in_arrow: whether Arrow holds every value exactly, as far as statistics tell.
    :param values: how many values each of the table's first columns holds; None where the footers cannot say it.
    :param zones: in which timestamps are counted; one at most.
    """

    rows: int = 0
    is_exact_in_arrow: bool = True
    values: tuple[int, ...] | None = ()
    zones: frozenset[str] = frozenset()
    calendars: frozenset[int] = frozenset()
    depends_on_calendar: bool = False
    largest_stripe_bytes: int = 0

    @property
    def zone(self) -> str:
        """The zone in which sources and output count their timestamps."""
        return next(iter(self.zones - UTC_NAMES), "UTC")


def look_at(storage: Storage, bucket: BucketPlan, schema: OrcType, for_hive_3: bool) -> Sources:
    """Read every source's tail before anything is written; refuse here what can be known here.

    :param schema: of the output.
    :param for_hive_3: see :func:`~airflow_provider_acid.merge.rows.column_changes.check_columns`.
    :raises CorruptFileError: a source is damaged, or is not the planned one.
    :raises UnsupportedTableError: the sources cannot be brought together exactly.
    """
    found = Sources()
    for _, reader in open_in_order(storage, bucket.rows):
        if reader is None:
            continue
        check_columns(reader.name, reader.row_type, schema.children[5], for_hive_3)
        found.rows += reader.tail.rows
        sizes = [found.largest_stripe_bytes, *(stripe.size_bytes for stripe in reader.tail.stripes)]
        found.largest_stripe_bytes = max(sizes)
        found.values = _sum(found.values, reader.values_by_column())
        found.is_exact_in_arrow &= is_exact(reader, schema.children[5])
        found.calendars |= {reader.tail.calendar}
        found.depends_on_calendar |= _depends_on_calendar(reader)
        found.zones |= _zones(reader, found.zones)
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
