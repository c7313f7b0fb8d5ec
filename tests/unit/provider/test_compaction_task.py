"""The operator as a task: its fields, its tries, its identity."""

from __future__ import annotations

import json
import threading
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


def ti(**changes: Any) -> dict[str, Any]:
    fields = {"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": 3, "try_number": 1, **changes}
    return {"ti": SimpleNamespace(**fields)}


def test_all_tries_of_a_task_have_one_identity() -> None:
    assert task_identity(ti()) == task_identity(ti(try_number=2)) == "d/r/t/3"  # type: ignore[arg-type]


@pytest.mark.parametrize("part", ["dag_id", "run_id", "task_id", "map_index"])
def test_other_tasks_have_others(part: str) -> None:
    assert task_identity(ti(**{part: "other"})) != task_identity(ti())  # type: ignore[arg-type]
    assert task_identity({}) != task_identity({})


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
