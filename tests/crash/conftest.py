from __future__ import annotations

import pytest

from tests.crash.metastores import HIVE_3, THE_HIVE_4, CrashMetastore, on_its_own_worker
from tests.harness.table_state import TableState


@pytest.fixture(params=[on_its_own_worker(THE_HIVE_4), on_its_own_worker(HIVE_3)])
def metastore(request: pytest.FixtureRequest) -> CrashMetastore:
    """One after the other."""
    found: CrashMetastore = request.param
    return found


@pytest.fixture
def state(request: pytest.FixtureRequest, metastore: CrashMetastore) -> TableState:
    """A new table with inserts, deletes and aborted writes."""
    return metastore.table.register(metastore.start(request))
