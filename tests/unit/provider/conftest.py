from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_acid.acid.hive import HIVE_4
from airflow_provider_acid.metastore.hive4 import by_sql, server_check
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from tests.unit.provider.metastore_connection import SetConnection


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left_to_other_modules() -> Iterator[None]:
    """Airflow's hook leaves the pipe to spark-submit to the garbage collector, which warns whoever runs then."""
    yield
    gc.collect()


@pytest.fixture
def set_connection(monkeypatch: pytest.MonkeyPatch) -> SetConnection:
    def set_it(**fields: Any) -> None:
        monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", **fields}))

    return set_it


@pytest.fixture
def hive_4(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every metastore says it is Hive 4, and none is asked."""
    monkeypatch.setattr(AcidMetastoreClient, "probe", lambda self: HIVE_4)
    monkeypatch.setattr(server_check, "missing_rights", lambda database, tables: [])
    monkeypatch.setattr(by_sql, "queue_to_withhold_from", lambda database: None)
    # No thread of its own but housekeeping.
    monkeypatch.setattr(
        AcidMetastoreClient, "config_value", lambda self, name: "true" if "housekeeping" in name else "false"
    )
