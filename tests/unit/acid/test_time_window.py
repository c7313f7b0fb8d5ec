from __future__ import annotations

from datetime import datetime

import pytest

from airflow_provider_acid.compaction.evaluate.time_window import TimeWindow
from airflow_provider_acid.exceptions import ConfigurationError

BERLIN = "Europe/Berlin"
"""The clock is put forward on 2026-03-29, from 02:00 to 03:00, and back on 2026-10-25, from 03:00 to 02:00."""


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("window", "zone", "now", "end"),
    [
        ("09:00-17:00", "UTC", "2026-01-05T09:00:00+00:00", "2026-01-05T17:00:00+00:00"),
        ("09:00-17:00", "UTC", "2026-01-05T16:59:59+00:00", "2026-01-05T17:00:00+00:00"),
        ("22:00-06:00", "UTC", "2026-01-05T23:00:00+00:00", "2026-01-06T06:00:00+00:00"),
        ("22:00-06:00", "UTC", "2026-01-06T05:59:00+00:00", "2026-01-06T06:00:00+00:00"),
        ("00:00-06:00", "UTC", "2026-01-06T00:00:00+00:00", "2026-01-06T06:00:00+00:00"),
        ("22:00-06:00", BERLIN, "2026-07-05T20:30:00+00:00", "2026-07-06T04:00:00+00:00"),
        ("22:00-06:00", "America/New_York", "2026-01-06T04:00:00+00:00", "2026-01-06T11:00:00+00:00"),
        ("22:00-06:00", BERLIN, "2026-03-28T22:00:00+00:00", "2026-03-29T04:00:00+00:00"),
        ("22:00-06:00", BERLIN, "2026-10-24T21:00:00+00:00", "2026-10-25T05:00:00+00:00"),
        ("02:15-04:00", BERLIN, "2026-10-25T01:30:00+00:00", "2026-10-25T03:00:00+00:00"),
        ("02:30-03:00", BERLIN, "2026-03-28T01:45:00+00:00", "2026-03-28T02:00:00+00:00"),
    ],
)
def test_a_window_that_is_open_ends_at_one_moment(window: str, zone: str, now: str, end: str) -> None:
    hours = TimeWindow.of(window, zone)
    assert hours.why_closed(seconds(now)) is None
    assert hours.seconds_of_end(seconds(now)) == seconds(end)


@pytest.mark.parametrize(
    ("window", "zone", "now", "until"),
    [
        ("09:00-17:00", "UTC", "2026-01-05T08:59:59+00:00", "2026-01-05 09:00"),
        ("09:00-17:00", "UTC", "2026-01-05T17:00:00+00:00", "2026-01-06 09:00"),
        ("22:00-06:00", "UTC", "2026-01-05T06:00:00+00:00", "2026-01-05 22:00"),
        ("22:00-06:00", BERLIN, "2026-07-05T04:00:00+00:00", "2026-07-05 22:00"),
        ("22:00-06:00", BERLIN, "2026-01-05T20:30:00+00:00", "2026-01-05 22:00"),
        ("02:30-03:00", BERLIN, "2026-03-28T12:00:00+00:00", "2026-03-30 02:30"),
        ("02:30-03:20", BERLIN, "2026-03-29T01:10:00+00:00", "2026-03-30 02:30"),
    ],
)
def test_a_window_that_is_closed_says_until_when(window: str, zone: str, now: str, until: str) -> None:
    reason = TimeWindow.of(window, zone).why_closed(seconds(now))
    assert reason == f"the time window {window} {zone} is closed until {until}"


@pytest.mark.parametrize(
    ("window", "zone", "message"),
    [
        ("22-06", "UTC", "time window '22-06': cannot be read. Remedy: write it like 22:00-06:00"),
        ("24:00-06:00", "UTC", "cannot be read"),
        ("22:00-06:60", "UTC", "cannot be read"),
        ("", "UTC", "cannot be read"),
        ("06:00-06:00", "UTC", "ends when it begins"),
        ("22:00-06:00", "Berlin", "time zone 'Berlin': is not known"),
        ("22:00-06:00", "", "is not known"),
        ("22:00-06:00", "../etc/passwd", "is not known"),
        ("22:00-06:00", "Europe", "is not known"),
    ],
)
def test_what_is_no_window_is_refused_with_the_remedy(window: str, zone: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        TimeWindow.of(window, zone)
