"""All tests here hold however many rows of a stripe are read at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_acid.merge.orc import stripe_batches
from tests.harness.forced_batches import BATCH_ROWS, batches_of


@pytest.fixture(scope="session", autouse=True)
def forced_batches() -> Iterator[None]:
    """As ``BATCH_ROWS`` says."""
    with batches_of(BATCH_ROWS):
        yield


@pytest.fixture
def whole_stripes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that count what is written: a writer's batches end where those that are read end."""
    monkeypatch.setattr(stripe_batches, "WHOLE_STRIPE_BYTES", 64 << 20)
