"""The plan of one table: named exactly, asked for by hand, refused loudly, and nothing changed."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException

from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.compaction.evaluate.demand import Demand
from airflow_provider_acid.compaction.evaluate.initiator import Evaluated, Evaluation
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.operators import table_plan
from airflow_provider_acid.operators.table_plan import AcidTablePlanOperator
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.thresholds import CompactionDecision
from tests.unit.provider.test_sensor import due

pytestmark = pytest.mark.usefixtures("hive_4")

ONE_DUE = Evaluation(due("p=1"))


class FakeInitiator:
    """Answers with ``evaluation`` and remembers what it was asked with."""

    evaluation = ONE_DUE
    asked: list[tuple[TableSelection, CompactionSettings, Demand]] = []

    def __init__(self, client: object, queue: object, settings: CompactionSettings, *, demand: Demand) -> None:
        self._with = settings, demand

    def evaluate(self, selection: TableSelection) -> Evaluation:
        self.asked.append((selection, *self._with))
        return self.evaluation


@pytest.fixture(autouse=True)
def _metastore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", "host": "not.asked"}))
    monkeypatch.setattr(table_plan, "Initiator", FakeInitiator)
    monkeypatch.setattr(FakeInitiator, "asked", [])
    monkeypatch.setattr(AcidTablePlanOperator, "log", logging.getLogger("plan"), raising=False)


def plan(
    monkeypatch: pytest.MonkeyPatch, evaluation: Evaluation = ONE_DUE, /, **parameters: Any
) -> list[list[dict[str, object]]]:
    monkeypatch.setattr(FakeInitiator, "evaluation", evaluation)
    return AcidTablePlanOperator(task_id="plan", **{"database": "d", "table": "t", **parameters}).execute({})


@pytest.mark.parametrize(
    ("given", "demand"),
    [
        ({}, Demand()),
        ({"partition": "None", "type": "auto"}, Demand()),
        ({"partition": "", "type": "minor"}, Demand((), CompactionType.MINOR)),
        ({"partition": "p=1", "type": "MAJOR"}, Demand(("p=1",), CompactionType.MAJOR)),
    ],
)
def test_the_form_makes_the_demand(monkeypatch: pytest.MonkeyPatch, given: dict[str, str], demand: Demand) -> None:
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__CANDIDATES", "written")
    (batch,) = plan(monkeypatch, **given)
    assert [item["partition"] for item in batch] == ["p=1"]
    ((selection, settings, asked),) = FakeInitiator.asked
    assert (selection, asked) == (TableSelection.of(["d.t"]), demand)
    assert settings.override_no_auto_compaction
    assert settings.candidates is Candidates.ALL


def test_partitions_come_in_batches_and_no_more_than_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    many = Evaluation(due(*(f"p={number}" for number in range(5))))
    found = plan(monkeypatch, many, batch_partitions="2", max_partitions="3")
    assert [len(batch) for batch in found] == [2, 1]


def test_there_are_no_more_batches_than_airflow_maps_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "3")
    found = plan(monkeypatch, Evaluation(due(*(f"p={number}" for number in range(5)))), batch_partitions=1)
    assert [[item["partition"] for item in batch] for batch in found] == [["p=0"], ["p=1"], ["p=2"]]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("database", "*"),
        ("table", ""),
        ("partition", "p"),
        ("type", "full"),
        ("decide_only", "x"),
        ("batch_partitions", 0),
    ],
)
def test_what_cannot_be_used_is_refused_by_name_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    with pytest.raises(AirflowFailException, match=name):
        plan(monkeypatch, **{name: value})
    assert FakeInitiator.asked == []


@pytest.mark.parametrize("flag", [True, "True"])
def test_a_dry_run_shows_every_partition_and_hands_nothing_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, flag: object
) -> None:
    caplog.set_level(logging.INFO)
    not_due = Evaluated(due("p=2")[0].entity, CompactionDecision(None, "not due: 2 deltas ≤ 10"))
    with pytest.raises(AirflowSkipException, match="Dry run: 1 partitions would be compacted, nothing was changed"):
        plan(monkeypatch, Evaluation(due("p=1"), (not_due,)), decide_only=flag)
    assert [line.split()[0] for line in caplog.messages if line.startswith("  d.t")] == ["d.t/p=1", "d.t/p=2"]


def test_nothing_to_do_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AirflowSkipException, match=r"Nothing of d\.t is to be compacted \(auto\); the log says why"):
        plan(monkeypatch, Evaluation(skipped=("d.t: there is only base_3",)))


def test_what_is_refused_fails_where_nothing_else_is_to_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = ("d.t/p=1: no. Remedy: yes.", "d.t/p=2: no. Remedy: yes.")
    with pytest.raises(AirflowFailException) as caught:
        plan(monkeypatch, Evaluation(skipped=refused, refused=refused), type="major")
    assert str(caught.value) == (
        "Nothing of d.t is to be compacted (major): d.t/p=1: no. Remedy: yes. (and 1 more, see the log)"
    )
    assert plan(monkeypatch, Evaluation(due("p=3"), skipped=refused, refused=refused))


@pytest.mark.parametrize("name", AcidTablePlanOperator.template_fields)
def test_every_templated_field_is_kept_as_it_is_given(name: str) -> None:
    given: dict[str, Any] = {"database": "d", "table": "t", name: "{{ params.x }}"}
    assert getattr(AcidTablePlanOperator(task_id="p", **given), name) == "{{ params.x }}"
