"""Long forms: some cases of a test are in every run of the tests, all of them in ``./run-tests soak``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def some_of(every: Sequence[T], *places: int) -> list[T]:
    """The cases to run.

    :param every: all of them.
    :param places: of those that are in every run.
    """
    return list(every) if every_case() else [every[place] for place in places]


def every_case() -> bool:
    """Whether the long forms are asked for."""
    return bool(os.environ.get("TEST_EVERY_CASE"))
