"""The operator as a task: its fields, its tries, its identity."""

from __future__ import annotations

import json
import threading
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_acid.compaction.work.batch import CompactionBatch
from airflow_provider_acid.operators.compaction import AcidCompactionOperator, task_identity


def operator(**parameters: Any) -> AcidCompactionOperator:
    return AcidCompactionOperator(task_id="compact", **{"partitions": [], **parameters})


def test_every_templated_field_is_an_attribute_and_kept_as_it_is_given() -> None:
    task = operator(partitions="{{ ti.x }}", hive_acid_conn_id="{{ a }}", run_directory="{{ b }}")
    found: tuple[object, ...] = (task.partitions, task.hive_acid_conn_id, task.run_directory)
    assert found == ("{{ ti.x }}", "{{ a }}", "{{ b }}")
    assert all(hasattr(task, name) for name in task.template_fields)
    assert {"conf", "py_files", "partitions"} <= set(task.template_fields)


def test_a_try_never_resumes_an_application() -> None:
    assert operator(durable=True).submission().durable is False


def test_a_task_that_is_killed_before_it_began_has_nothing_to_give_back() -> None:
    operator().on_kill()


def test_a_batch_that_is_stopped_starts_no_application() -> None:
    def wait_for_ever(*_: object) -> Any:
        raise AssertionError("never asked")

    batch = CompactionBatch([], wait_for_ever, wait_for_ever, max_active=1)
    batch.stop()
    batch.start()
    waiter = threading.Thread(target=batch.wait_until_planned, daemon=True)
    waiter.start()
    waiter.join(60)
    assert not waiter.is_alive()
    assert batch.wait_until_planned() is None


def context_of(microsecond: int = 0, **changes: object) -> Any:
    fields = {"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": 3, "try_number": 1, **changes}
    started = datetime(2026, 1, 1, microsecond=microsecond, tzinfo=timezone.utc)
    return {"ti": SimpleNamespace(**fields), "dag_run": SimpleNamespace(start_date=started)}


def test_all_tries_of_a_task_have_one_identity() -> None:
    of_first_try = task_identity(context_of())
    assert task_identity(context_of(try_number=2)) == of_first_try == "d/r/2026-01-01T00:00:00+00:00/t/3"


@pytest.mark.parametrize("part", ["dag_id", "run_id", "task_id", "map_index"])
def test_other_tasks_have_others(part: str) -> None:
    changed: dict[str, Any] = {part: "other"}
    assert task_identity(context_of(**changed)) != task_identity(context_of())
    assert task_identity({}) != task_identity({})


def test_tasks_of_two_airflows_whose_names_are_the_same_are_others() -> None:
    assert task_identity(context_of(microsecond=1)) != task_identity(context_of())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_num_delta", 0),
        ("minor_publish_lock", "perhaps"),
        ("minor_lock_wait_seconds", -1),
        ("minor_lock_timeout_action", "wait"),
        ("readers_honour_visibility", 2),
    ],
)
def test_a_parameter_of_minors_that_cannot_be_used_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", "host": "not.asked"}))
    with pytest.raises(AirflowFailException, match=f"parameter {name}"):
        operator(**{"partitions": [{"database": "d", "table": "t"}], name: value}).execute({})
