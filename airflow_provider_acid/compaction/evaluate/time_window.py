"""The hours of a day in which compactions may begin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

from airflow_provider_acid.exceptions import ConfigurationError

_WINDOW = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True)
class TimeWindow:
    """From one time of the day up to another, every day; past midnight where the end is the earlier.

    Both are times of the clock on the wall: a night in which the clock is put back is an hour longer.
    """

    start: time
    end: time
    zone: ZoneInfo

    @classmethod
    def of(cls, text: str, zone_name: str) -> TimeWindow:
        """Read a window as people write it.

        :param text: ``22:00-06:00``.
        :param zone_name: a name of the IANA time zone database, e.g. ``Europe/Berlin``.
        :raises ConfigurationError: it is no window, or nobody knows the zone.
        """
        match = _WINDOW.fullmatch(text.strip())
        if match is None:
            raise ConfigurationError(f"time window {text!r}", "cannot be read", "write it like 22:00-06:00")
        start, end = time(int(match[1]), int(match[2])), time(int(match[3]), int(match[4]))
        if start == end:
            raise ConfigurationError(
                f"time window {text!r}", "ends when it begins", "leave it empty to compact at any time"
            )
        try:
            zone = ZoneInfo(zone_name.strip())
        except (OSError, ValueError, LookupError) as error:  # what a name may be: missing, a folder, a path
            raise ConfigurationError(
                f"time zone {zone_name!r}", "is not known", "give a name such as UTC or Europe/Berlin"
            ) from error
        return cls(start, end, zone)

    def why_closed(self, now_seconds: float) -> str | None:
        """Why nothing begins now; None where the window is open.

        :param now_seconds: since 1970.
        """
        start, _ = self._next(now_seconds)
        if start.timestamp() <= now_seconds:
            return None
        return f"the time window {self} is closed until {start.astimezone(self.zone):%Y-%m-%d %H:%M}"

    def seconds_of_end(self, now_seconds: float) -> float:
        """When it ends next, in seconds since 1970, as ``now_seconds`` is."""
        return self._next(now_seconds)[1].timestamp()

    def _next(self, now_seconds: float) -> tuple[datetime, datetime]:
        """Begin and end, in UTC, of the day's window that is open, or else of the next."""
        today = datetime.fromtimestamp(now_seconds, self.zone).date()
        of_days = (self._of_day(today + timedelta(days=days)) for days in range(-1, 4))
        # Where the clock is put forward, a short one may begin in the hour that is left out: that day has none.
        return next((start, end) for start, end in of_days if start < end and end.timestamp() > now_seconds)

    def _of_day(self, day: date) -> tuple[datetime, datetime]:
        last = day if self.start < self.end else day + timedelta(days=1)
        start, end = datetime.combine(day, self.start, self.zone), datetime.combine(last, self.end, self.zone)
        # Compared in UTC, for local times are compared by the clock alone, which is put forward and back.
        return start.astimezone(timezone.utc), end.astimezone(timezone.utc)

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M} {self.zone.key}"
