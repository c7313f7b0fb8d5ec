"""What came of something that a test tried."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from airflow_provider_acid.exceptions import StorageError
from tests.storage.stores import Store

PATIENCE_SECONDS = 120
"""Not how long something should take: when a test gives up that would hang otherwise."""


def error_of(call: Callable[[], object]) -> StorageError:
    """The error of what must fail."""
    with pytest.raises(StorageError) as caught:
        call()
    return caught.value


def outcome(call: Callable[[], object]) -> StorageError | None:
    """The error of what may fail; None where it did not."""
    try:
        call()
    except StorageError as error:
        return error
    return None


def files(store: Store) -> set[str]:
    """The paths of all files that are there."""
    return {name for name in store.names() if not name.endswith("/")}
