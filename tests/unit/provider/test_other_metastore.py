"""Sensor and operator with connections to two metastores: a task that would find nothing to do says so, and fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.hooks import connected_batch
from airflow_provider_acid.operators.compaction import AcidCompactionOperator

DROPPED = {"database": "d", "type": "major", "was_seen": True}
OWN, OTHERS = "11111111-0000-0000-0000-000000000000", "22222222-0000-0000-0000-000000000000"


@pytest.fixture(autouse=True)
def _metastore_without_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin_together(due: list[DuePartition]) -> list[Outcome]:
        return [Outcome(one.entity, OutcomeState.SKIPPED, "it was dropped since it was found due") for one in due]

    @contextmanager
    def open_worker(*_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(metastore=OWN, table_location=lambda items: None, begin_together=begin_together)

    monkeypatch.setattr(connected_batch, "open_connected_worker", open_worker)
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", "host": "not.asked"}))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[1]"}))


def states_of(*found_in: str | None) -> list[object]:
    partitions = [{**DROPPED, "table": f"t{number}", "metastore_id": one} for number, one in enumerate(found_in)]
    outcomes = AcidCompactionOperator(task_id="compact", partitions=partitions).execute({})
    return [outcome["state"] for outcome in outcomes]


@pytest.mark.parametrize("found_in", [(OWN, OWN), (None,), (OWN, None)])
def test_what_was_dropped_is_skipped_be_it_all(found_in: tuple[str | None, ...]) -> None:
    assert states_of(*found_in) == ["skipped"] * len(found_in)


@pytest.mark.parametrize("found_in", [(OTHERS,), (OWN, OTHERS)])
def test_what_was_found_in_another_metastore_ends_the_task_for_good(found_in: tuple[str, ...]) -> None:
    with pytest.raises(AirflowFailException, match=rf"d.t\d: was found due in another metastore .*{OTHERS}.*{OWN}"):
        states_of(*found_in)
