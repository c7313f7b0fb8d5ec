from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.metastore_server import MetastoreServer


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """One metastore for the whole run, without a reaper; tests use a database of their own in it."""
    with MetastoreServer(tmp_path_factory.mktemp("metastore"), reaper=False) as server:
        yield server
