"""A killed cleaner or housekeeper leaves its work by an error, and is left in peace where it does no work."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.operators import cleaner, housekeeping
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.housekeeping import AcidHousekeepingOperator
from tests.unit.provider.waiting import ended

pytestmark = pytest.mark.usefixtures("hive_4")

CLEANER = AcidCleanerOperator(task_id="t", partitions=[{"database": "d", "table": "t"}])
HOUSEKEEPER = AcidHousekeepingOperator(task_id="t", tables=["d.*"])
WORK: list[Any] = [
    (CLEANER, lambda: CLEANER.execute({})),
    (CLEANER, lambda: CLEANER.execute_complete({}, ended("ready"))),
    (HOUSEKEEPER, lambda: HOUSEKEEPER.execute({})),
]
EACH = pytest.mark.parametrize(("operator", "work"), WORK, ids=["cleaning", "cleaning after a wait", "housekeeping"])


class Disturbed:
    """A cleaner or housekeeper in whose work something strikes."""

    strikes: Any = None

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def clean(self, _: object) -> Any:
        type(self).strikes()
        return ()

    sweep = clean


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> list[AcidMetastoreClient]:
    """Clients that were closed."""
    clients: list[AcidMetastoreClient] = []
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", "host": "not.asked"}))
    monkeypatch.setattr(cleaner, "Cleaner", Disturbed)
    monkeypatch.setattr(housekeeping, "Housekeeper", Disturbed)
    monkeypatch.setattr(AcidMetastoreClient, "close", lambda client: clients.append(client))
    return clients


@EACH
def test_a_kill_ends_the_work_where_it_stands_and_closes_what_is_open(
    monkeypatch: pytest.MonkeyPatch, closed: list[AcidMetastoreClient], operator: Any, work: Any
) -> None:
    monkeypatch.setattr(Disturbed, "strikes", operator.on_kill)
    with pytest.raises(SystemExit, match="killed"):
        work()
    assert len(closed) == 1


class TimeOut(BaseException):
    """Airflow's own time-out is no Exception."""


@EACH
def test_a_time_out_stays_a_time_out(monkeypatch: pytest.MonkeyPatch, operator: Any, work: Any) -> None:
    def strike() -> None:
        raise TimeOut

    monkeypatch.setattr(Disturbed, "strikes", strike)
    with pytest.raises(TimeOut):
        work()
    operator.on_kill()


@pytest.mark.parametrize("operator", [CLEANER, HOUSEKEEPER])
def test_before_its_work_there_is_nothing_to_end(operator: Any) -> None:
    operator.on_kill()
