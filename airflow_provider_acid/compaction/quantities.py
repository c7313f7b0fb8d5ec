"""Bytes, times and rates for people."""

from __future__ import annotations


def human_bytes(count: float) -> str:
    """A byte count: ``512 B``, ``1.5 KiB``, ``12.0 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def human_seconds(seconds: float) -> str:
    """A time: ``45 s``, ``12 min``, ``3 h 05 min``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


def time_left(done: float, total: float, seconds: float) -> str:
    """What is left at the rate until now: ``about 12 min left``; nothing where there is no rate yet.

    :param seconds: that what is done took.
    """
    if done <= 0 or total < done:
        return "time left unknown"
    return f"about {human_seconds((total - done) * seconds / done)} left"
