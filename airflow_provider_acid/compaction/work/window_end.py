"""Until when partitions of a batch may be begun: the end of the time window that was open when it started."""

from __future__ import annotations

import time
from dataclasses import dataclass

from airflow_provider_acid.compaction.evaluate.time_window import TimeWindow


@dataclass(frozen=True)
class WindowEnd:
    """One night, say, of a time window; its end is a moment, not an hour that comes again the next day.

    :param ends_seconds: when it ends, in seconds since 1970.
    :param why_over: what is said of partitions that were not begun by then.
    """

    ends_seconds: float
    why_over: str

    @classmethod
    def of(cls, window: TimeWindow) -> WindowEnd:
        """What is open at this moment; where nothing is, a window that has ended."""
        now = time.time()
        closed = window.why_closed(now)
        if closed is not None:
            return cls(now, closed)
        return cls(window.seconds_of_end(now), f"the time window {window} is over")

    @property
    def is_over(self) -> bool:
        """Whether nothing may begin any more."""
        return time.time() >= self.ends_seconds
