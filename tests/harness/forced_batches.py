"""Every stripe read in batches, however small it is: what only large stripes meet otherwise."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from airflow_provider_acid.merge.orc import stripe_batches

BATCH_ROWS = int(os.environ.get("BATCH_ROWS", 0))
"""Rows of a batch; 0 leaves it to the stripe's size. All tests that read stripes hold for every value."""


@contextmanager
def batches_of(rows: int) -> Iterator[None]:
    """Read every stripe that has more rows in batches of so many.

    :param rows: 0 changes nothing.
    """
    with pytest.MonkeyPatch.context() as patch:
        if rows:
            patch.setattr(stripe_batches, "WHOLE_STRIPE_BYTES", 0)
            patch.setattr(stripe_batches, "MAX_BATCH_ROWS", rows)
        yield
