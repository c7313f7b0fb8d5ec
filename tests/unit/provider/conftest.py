from __future__ import annotations

import pytest

from airflow_provider_acid.metastore.client import AcidMetastoreClient, MetastoreFacts


@pytest.fixture
def hive_4(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every metastore says it is Hive 4, and none is asked."""
    monkeypatch.setattr(AcidMetastoreClient, "probe", lambda self: MetastoreFacts("4.0.1", supports_thrift_queue=True))
