from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.metastore_server import REAPER_SECONDS, MetastoreServer


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """A metastore that leaves dead transactions alone."""
    with MetastoreServer(tmp_path_factory.mktemp("metastore"), reaper=False) as server:
        yield server


@pytest.fixture(scope="session")
def reaping_metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """A metastore that aborts transactions that were silent for :data:`REAPER_SECONDS`."""
    folder = tmp_path_factory.mktemp("reaping-metastore")
    with MetastoreServer(folder, transaction_timeout_seconds=REAPER_SECONDS, reaper=True) as server:
        yield server
