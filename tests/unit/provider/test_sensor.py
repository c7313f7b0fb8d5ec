"""The sensor: one look at all tables, small batches, few log lines, and requests of others never passed in silence."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, AirflowSkipException, PokeReturnValue

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.compaction.evaluate.initiator import Evaluated, Evaluation, Initiator
from airflow_provider_acid.compaction.evaluate.selection import TableSelection, UnmatchedPattern
from airflow_provider_acid.compaction.outcomes import DuePartition
from airflow_provider_acid.compaction.requests_of_others import NOT_SERVED, LeftRequest
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.metastore.database.written import WriteRecords
from airflow_provider_acid.option import MOST_IN_RUN
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.thresholds import CompactionDecision
from airflow_provider_acid.sensors import compaction
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor

pytestmark = pytest.mark.usefixtures("hive_4")

NOTHING = Evaluation()


class FakeInitiator:
    """Answers with ``evaluation`` and remembers what it was asked with."""

    evaluation = NOTHING
    asked: list[tuple[TableSelection, CompactionSettings]] = []
    writes: list[object] = []

    def __init__(
        self, client: object, queue: object, settings: CompactionSettings, writes: object, observer: object = None
    ) -> None:
        self._settings = settings
        self.writes.append(writes)

    def evaluate(self, selection: TableSelection) -> Evaluation:
        self.asked.append((selection, self._settings))
        return self.evaluation


@pytest.fixture(autouse=True)
def _metastore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", "host": "not.asked"}))
    monkeypatch.setattr(compaction, "Initiator", FakeInitiator)
    monkeypatch.setattr(FakeInitiator, "asked", [])
    monkeypatch.setattr(FakeInitiator, "writes", [])
    monkeypatch.setattr(AcidCompactionSensor, "log", logging.getLogger("sensor"), raising=False)


def due(*names: str, request_id: int | None = None) -> tuple[DuePartition, ...]:
    return tuple(DuePartition(Entity("d", "t", name), CompactionType.MAJOR, "12 deltas", request_id) for name in names)


def poke(monkeypatch: pytest.MonkeyPatch, evaluation: Evaluation = NOTHING, **parameters: Any) -> PokeReturnValue:
    monkeypatch.setattr(FakeInitiator, "evaluation", evaluation)
    of_airflow = {name: parameters.pop(name) for name in parameters.keys() - {*AcidCompactionSensor.template_fields}}
    sensor = AcidCompactionSensor(task_id="s", tables=["d.*"], **of_airflow)
    for name, value in parameters.items():
        # As Airflow does when it has rendered a template.
        setattr(sensor, name, value)
    return sensor.poke({})


def settings_for(monkeypatch: pytest.MonkeyPatch, **parameters: Any) -> CompactionSettings:
    poke(monkeypatch, **parameters)
    return FakeInitiator.asked[-1][1]


def test_it_waits_while_nothing_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not poke(monkeypatch).is_done


@pytest.mark.parametrize("flag", [True, "True", "true"])
def test_or_skips_what_follows_if_told_so(monkeypatch: pytest.MonkeyPatch, flag: object) -> None:
    with pytest.raises(AirflowSkipException, match=r"No partition of d\.\* is due for compaction"):
        poke(monkeypatch, skip_when_nothing_due=flag)
    assert not poke(monkeypatch, skip_when_nothing_due="False").is_done
    assert poke(monkeypatch, Evaluation(due("p=1")), skip_when_nothing_due=flag).is_done


@pytest.mark.parametrize(
    ("size", "most", "batches"),
    [
        (2, 1000, [["p=1", "p=2"], ["p=3", "p=4"], ["p=5"]]),
        ("50", "1000", [["p=1", "p=2", "p=3", "p=4", "p=5"]]),
        (2, 3, [["p=1", "p=2"], ["p=3"]]),
        (1, 2, [["p=1"], ["p=2"]]),
    ],
)
def test_due_partitions_come_in_batches_the_worst_first(
    monkeypatch: pytest.MonkeyPatch, size: object, most: object, batches: list[list[str]]
) -> None:
    evaluation = Evaluation(due("p=1", "p=2", "p=3", "p=4", "p=5"))
    answer = poke(monkeypatch, evaluation, batch_partitions=size, max_partitions=most)
    assert answer.is_done
    assert answer.xcom_value is not None
    assert [[item["partition"] for item in batch] for batch in answer.xcom_value] == batches


def test_there_are_no_more_batches_than_airflow_maps_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "3")
    answer = poke(monkeypatch, Evaluation(due(*(f"p={number}" for number in range(5)))), batch_partitions=1)
    assert answer.xcom_value is not None
    assert [[item["partition"] for item in batch] for batch in answer.xcom_value] == [["p=0"], ["p=1"], ["p=2"]]


def test_the_largest_run_fits_into_a_small_xcom(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"ss_sold_date=2026-11-25/ss_store={number:05d}" for number in range(MOST_IN_RUN + 1)]
    answer = poke(monkeypatch, Evaluation(due(*names)))
    assert answer.xcom_value is not None
    assert [len(batch) for batch in answer.xcom_value] == [1000] * 10
    assert len(json.dumps(answer.xcom_value)) < 2_000_000


def test_an_item_is_small_and_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = poke(monkeypatch, Evaluation(due("p=1", request_id=7)))
    assert answer.xcom_value is not None
    ((item,),) = answer.xcom_value
    assert item == {
        "database": "d",
        "table": "t",
        "partition": "p=1",
        "type": "major",
        "reason": "12 deltas",
        "request_id": 7,
    }
    assert json.loads(json.dumps(item)) == item


def test_the_tables_make_the_selection(monkeypatch: pytest.MonkeyPatch) -> None:
    poke(monkeypatch, tables="['a.*', 'b.c']", exclude="a.x, a.y")
    assert FakeInitiator.asked[-1][0] == TableSelection.of(["a.*", "b.c"], ["a.x", "a.y"])


@pytest.mark.parametrize("exclude", [None, [], "", [""]])
def test_an_emptied_field_of_the_form_leaves_no_table_out_whatever_is_configured(
    monkeypatch: pytest.MonkeyPatch, exclude: Any
) -> None:
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__EXCLUDE", "d.configured")
    poke(monkeypatch, exclude=exclude)
    assert FakeInitiator.asked[-1][0] == TableSelection.of(["d.*"])


def test_what_is_not_given_comes_from_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings_for(monkeypatch) == CompactionSettings()
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__DELTA_NUM_THRESHOLD", "3")
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__SERVE_FOREIGN_REQUESTS", "True")
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__CANDIDATES", "written")
    found = settings_for(monkeypatch)
    assert (found.thresholds.delta_num_threshold, found.serve_foreign_requests) == (3, True)
    assert found.candidates is Candidates.WRITTEN
    found = settings_for(monkeypatch, delta_num_threshold=4, serve_foreign_requests=False, candidates="all")
    assert (found.thresholds.delta_num_threshold, found.serve_foreign_requests) == (4, False)
    assert found.candidates is Candidates.ALL


def test_the_evaluation_may_ask_the_metastores_database_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    poke(monkeypatch)
    assert FakeInitiator.writes == [None]
    metastore = {"conn_type": "hive_acid", "host": "not.asked", "extra": {"metastore_db_conn_id": "hive_db"}}
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps(metastore))
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_DB", "postgres://not.asked.either/hive")
    poke(monkeypatch)
    assert isinstance(FakeInitiator.writes[-1], WriteRecords)


def test_written_without_a_connection_to_the_metastores_database_is_refused_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compaction, "Initiator", Initiator)
    with pytest.raises(ConfigurationError, match="candidates = written: needs .* metastore_db_conn_id"):
        poke(monkeypatch, candidates="written")


def test_parameters_may_come_as_text_from_a_template(monkeypatch: pytest.MonkeyPatch) -> None:
    found = settings_for(
        monkeypatch,
        delta_num_threshold="0",
        delta_pct_threshold="0.25",
        candidates="written",
        override_no_auto_compaction="True",
        serve_foreign_requests="true",
    )
    assert found.candidates is Candidates.WRITTEN
    assert (found.thresholds.delta_num_threshold, found.thresholds.delta_pct_threshold) == (0, 0.25)
    assert (found.override_no_auto_compaction, found.serve_foreign_requests) == (True, True)
    assert not settings_for(monkeypatch, override_no_auto_compaction="False").override_no_auto_compaction


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tables", 5),
        ("exclude", {"a": 1}),
        ("delta_num_threshold", "many"),
        ("delta_num_threshold", -1),
        ("delta_pct_threshold", "a tenth"),
        ("candidates", "some"),
        ("override_no_auto_compaction", "perhaps"),
        ("serve_foreign_requests", "perhaps"),
        ("batch_partitions", 0),
        ("max_partitions", "all"),
        ("max_gib", 0),
        ("max_gib", "much"),
        ("time_window", "at night"),
        ("decide_only", "perhaps"),
        ("fail_on_unmatched_patterns", "perhaps"),
        ("skip_when_nothing_due", "perhaps"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch, name: str, value: Any
) -> None:
    with pytest.raises(ConfigurationError, match=f"^parameter {name}: is "):
        poke(monkeypatch, **{name: value})
    assert FakeInitiator.asked == []


@pytest.mark.parametrize("name", AcidCompactionSensor.template_fields)
def test_every_templated_field_is_kept_as_it_is_given(name: str) -> None:
    given: dict[str, Any] = {"tables": ["d.t"], name: "{{ params.x }}"}
    assert getattr(AcidCompactionSensor(task_id="s", **given), name) == "{{ params.x }}"


def test_it_frees_its_worker_and_looks_as_often_as_hive(monkeypatch: pytest.MonkeyPatch) -> None:
    sensor = AcidCompactionSensor(task_id="s", tables=["d.t"])
    assert (sensor.mode, sensor.poke_interval) == ("reschedule", 300.0)
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__CHECK_INTERVAL_SECONDS", "7")
    assert AcidCompactionSensor(task_id="s", tables=["d.t"]).poke_interval == 7.0


def test_the_authors_of_a_dag_decide_otherwise() -> None:
    with DAG("d", schedule=None, default_args={"mode": "poke", "poke_interval": 5}):
        sensor = AcidCompactionSensor(task_id="s", tables=["d.t"])
        other = AcidCompactionSensor(task_id="o", tables=["d.t"], poke_interval=timedelta(seconds=9))
    assert (sensor.mode, sensor.poke_interval, other.poke_interval) == ("poke", 5, 9)


def foreign(*ids: int) -> tuple[LeftRequest, ...]:
    return tuple(LeftRequest(id, Entity("d", "t"), "minor", NOT_SERVED) for id in ids)


def messages(caplog: pytest.LogCaptureFixture, level: int) -> Sequence[str]:
    return [line for of, line in told(caplog) if of == level]


def told(caplog: pytest.LogCaptureFixture) -> Sequence[tuple[int, str]]:
    """What the sensor said, without what Airflow says of its connection."""
    return [(record.levelno, record.getMessage()) for record in caplog.records if record.name == "sensor"]


def test_what_was_found_is_told_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    evaluated = (Evaluated(Entity("d", "t", "p=1"), CompactionDecision(CompactionType.MAJOR, "12 deltas")),)
    poke(monkeypatch, Evaluation(due("p=1"), evaluated, ("table d.u: no",), foreign(11)))
    assert len(messages(caplog, logging.WARNING)) == 1
    lines = messages(caplog, logging.INFO)
    assert lines[0] == "1 partition looked at: 1 due, 1 skipped, 1 request of others not served"
    assert lines[1] == "due: 1"
    assert lines[-1] == "skipped: table d.u: no"


# --- budgets


def weighed(**gib: int) -> Evaluation:
    """Due partitions, worst first, whose compactions read so much."""
    decision = CompactionDecision(CompactionType.MAJOR, "12 deltas")
    entities = [Entity("d", "t", f"p={name}") for name in gib]
    figures = tuple(
        Evaluated(entity, decision, 0, size * 2**30) for entity, size in zip(entities, gib.values(), strict=True)
    )
    return Evaluation(due(*(f"p={name}" for name in gib)), figures)


@pytest.mark.parametrize(
    ("most", "taken"), [(None, "abc"), ("None", "abc"), ("", "abc"), (30, "ab"), ("29", "a"), (1, "a"), (30.0, "ab")]
)
def test_the_budget_of_bytes_ends_with_the_first_that_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, most: Any, taken: str
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__MAX_GIB", "1")  # what the form of acid_compaction starts with
    answer = poke(monkeypatch, weighed(a=20, b=10, c=1), max_gib=most)
    assert answer.xcom_value is not None
    assert [item["partition"] for item in answer.xcom_value[0]] == [f"p={name}" for name in taken]
    left = [line for line in caplog.messages if "left to the next run (budget): " in line]
    assert len(left) == 3 - len(taken)


# --- the time window


@pytest.fixture
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 12 * 3600.0)


@pytest.mark.usefixtures("noon")
def test_outside_its_time_window_it_waits_or_skips_and_asks_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    night = {"time_window": "22:00-06:00", "time_zone": "Europe/Berlin"}
    reason = (
        r"No compaction of d\.\* begins now: the time window 22:00-06:00 Europe/Berlin is closed until 1970-01-01 22:00"
    )
    assert not poke(monkeypatch, Evaluation(due("p=1")), **night).is_done
    assert re.fullmatch(reason, caplog.messages[-1])
    with pytest.raises(AirflowSkipException, match=reason):
        poke(monkeypatch, Evaluation(due("p=1")), skip_when_nothing_due=True, **night)
    assert FakeInitiator.asked == []


@pytest.mark.usefixtures("noon")
@pytest.mark.parametrize("window", ["08:00-18:00", None, "", "None"])
def test_inside_its_time_window_or_without_one_it_looks(monkeypatch: pytest.MonkeyPatch, window: str | None) -> None:
    assert poke(monkeypatch, Evaluation(due("p=1")), time_window=window).is_done


# --- dry runs


@pytest.mark.usefixtures("noon")
@pytest.mark.parametrize("flag", [True, "True", "true"])
def test_a_dry_run_shows_the_decisions_at_any_hour_and_skips_what_follows(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, flag: object
) -> None:
    caplog.set_level(logging.INFO)
    not_due = Evaluated(Entity("d", "t", "p=2"), CompactionDecision(None, "not due: 2 deltas ≤ 10"))
    with pytest.raises(AirflowSkipException, match="Dry run: 1 partitions would be compacted, nothing was changed"):
        poke(monkeypatch, Evaluation(due("p=1"), (not_due,)), decide_only=flag, time_window="22:00-06:00")
    assert [line.split()[0] for line in caplog.messages if line.startswith("  d.t")] == ["d.t/p=1", "d.t/p=2"]
    assert caplog.messages[-1].endswith("not due: 2 deltas ≤ 10")


# --- patterns that no table needs

TYPO = "table pattern 'slaes.*' matches no table"
FOR_LATER = "excluded pattern 'sales.tmp_*' leaves out no table"
UNMATCHED = (UnmatchedPattern(TYPO), UnmatchedPattern(FOR_LATER, is_mistake=False))


@pytest.mark.parametrize("decide_only", [False, True])
def test_a_pattern_that_matches_no_table_is_told_by_a_warning_where_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, decide_only: bool
) -> None:
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__FAIL_ON_UNMATCHED_PATTERNS", "False")
    evaluation = Evaluation(due("p=1"), unmatched=UNMATCHED)
    if decide_only:
        with pytest.raises(AirflowSkipException):
            poke(monkeypatch, evaluation, decide_only=True)
    else:
        assert poke(monkeypatch, evaluation).is_done
    assert messages(caplog, logging.WARNING) == [f"{told}; correct it, or take it out" for told in (TYPO, FOR_LATER)]


@pytest.mark.parametrize("decide_only", [False, True])
@pytest.mark.parametrize(("parameter", "option"), [(True, "False"), ("True", "False"), (None, None)])
def test_else_it_fails_the_task_at_once(
    monkeypatch: pytest.MonkeyPatch, parameter: Any, option: str | None, decide_only: bool
) -> None:
    if option is not None:
        monkeypatch.setenv("AIRFLOW__HIVE_ACID__FAIL_ON_UNMATCHED_PATTERNS", option)
    evaluation = Evaluation(due("p=1"), unmatched=UNMATCHED)
    monkeypatch.setattr(FakeInitiator, "evaluation", evaluation)
    sensor = AcidCompactionSensor(
        task_id="s", tables=["d.*"], mode="poke", decide_only=decide_only, fail_on_unmatched_patterns=parameter
    )
    with pytest.raises(AirflowFailException, match=f"^table selection: {re.escape(TYPO)}. Remedy: correct them"):
        sensor.execute({})
    monkeypatch.setattr(FakeInitiator, "evaluation", Evaluation(due("p=1"), unmatched=UNMATCHED[1:]))
    sensor.decide_only = False
    assert sensor.execute({})


def test_the_task_goes_before_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__FAIL_ON_UNMATCHED_PATTERNS", "True")
    evaluation = Evaluation(due("p=1"), unmatched=UNMATCHED)
    assert poke(monkeypatch, evaluation, fail_on_unmatched_patterns=False).is_done
