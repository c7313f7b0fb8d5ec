"""No test here is about time: Hypothesis gives no example a deadline, however busy the machine is."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
