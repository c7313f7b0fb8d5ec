"""Cleaner operator and trigger: a wait that costs no worker, has an end, and gives exactly one answer."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    TaskDeferred,
    conf,
)

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.exceptions import MetastoreUnavailableError
from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.operators import cleaner as operator_module
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.triggers import cleaner as trigger_module
from airflow_provider_acid.triggers import wait
from airflow_provider_acid.triggers.cleaner import CleaningTrigger
from airflow_provider_acid.triggers.wait import FAILED_POLLS
from tests.unit.provider.waiting import NOW, Clock, ended, events

pytestmark = pytest.mark.usefixtures("hive_4")

READY, WAITING, CLEANED, KEPT, FAILED = CleaningState
BLOCKER = "waits for transaction 9 of eve@there, open for 60 s"

Round = Sequence[CleaningState] | Exception
"""What one look or one cleaning finds, partition by partition; or how it fails."""


class FakeCleaner:
    """Finds what it is told to; the last round goes on for ever."""

    rounds: list[Round] = []
    asked: list[tuple[Entity, ...]] = []
    settings: list[CompactionSettings] = []

    def __init__(self, client: object, queue: object, settings: CompactionSettings, connect: object = None) -> None:
        self.settings.append(settings)

    def look(self, entities: Collection[Entity]) -> tuple[Cleaning, ...]:
        self.asked.append(tuple(entities))
        found = self.rounds.pop(0) if len(self.rounds) > 1 else self.rounds[0]
        if isinstance(found, Exception):
            raise found
        texts = {WAITING: BLOCKER, FAILED: "no disk"}
        pairs = zip(entities, found, strict=False)
        return tuple(Cleaning(entity, 1, state, texts.get(state, ""), ("delta_1_1",)) for entity, state in pairs)

    clean = look


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", "host": "not.asked"}))
    for module in (operator_module, trigger_module):
        monkeypatch.setattr(module, "Cleaner", FakeCleaner)
    for module in (operator_module, wait):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(asyncio, "sleep", clock.sleep_async)
    monkeypatch.setattr(FakeCleaner, "asked", [])
    monkeypatch.setattr(FakeCleaner, "settings", [])
    return clock


def finds(monkeypatch: pytest.MonkeyPatch, *rounds: Round) -> None:
    monkeypatch.setattr(FakeCleaner, "rounds", list(rounds))


PARTITIONS: list[dict[str, Any]] = [
    {"database": "d", "table": "t", "partition": "p=1", "type": "major", "reason": "r", "request_id": None},
    {"database": "d", "table": "u", "partition": None},
]


def operator(**parameters: Any) -> AcidCleanerOperator:
    return AcidCleanerOperator(task_id="clean", **{"partitions": PARTITIONS, "deferrable": False, **parameters})


def states(done: Sequence[dict[str, object]]) -> list[object]:
    return [item["state"] for item in done]


def test_what_can_be_cleaned_is_cleaned_at_once(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    finds(monkeypatch, (CLEANED, KEPT))
    done = operator().execute({})
    assert done[0] == {
        "database": "d",
        "table": "t",
        "partition": "p=1",
        "request_id": 1,
        "state": "cleaned",
        "message": "",
        "deleted": 1,
    }
    assert states(done) == ["cleaned", "kept"]
    assert json.loads(json.dumps(done)) == done
    assert clock.naps == []


def test_nothing_to_clean_is_success(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, ())
    assert operator(partitions=[]).execute({}) == []


def test_without_deferring_it_looks_again_until_the_readers_are_gone(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    finds(monkeypatch, (CLEANED, WAITING), (WAITING,), (CLEANED,))
    assert states(operator(poll_seconds="10").execute({})) == ["cleaned", "cleaned"]
    assert clock.naps == [10.0, 10.0]


def test_the_deadline_skips_the_task_and_names_who_blocks(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    finds(monkeypatch, (CLEANED, WAITING), (WAITING, WAITING))
    with pytest.raises(
        AirflowSkipException, match=f"^d.t/p=1 {BLOCKER}; d.u {BLOCKER}. The time .* next run cleans it"
    ):
        operator(cleaning_deadline_seconds="25", poll_seconds=10).execute({})
    assert clock.naps == [10.0, 10.0, 5.0]


@pytest.mark.parametrize("deferrable", [False, True])
def test_a_failure_is_raised_after_the_others_were_cleaned(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, deferrable: bool
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(AcidCleanerOperator, "log", logging.getLogger("cleaner"), raising=False)
    finds(monkeypatch, (FAILED, CLEANED))
    with pytest.raises(AirflowException, match="^d.t/p=1: no disk$"):
        operator(deferrable=deferrable).execute({})
    assert "d.u: cleaned" in caplog.text


def defer(**parameters: Any) -> TaskDeferred:
    with pytest.raises(TaskDeferred) as deferred:
        operator(deferrable=True, **parameters).execute({})
    return deferred.value


def test_the_wait_is_handed_to_the_triggerer_with_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, (CLEANED, WAITING))
    deferred = defer(cleaning_deadline_seconds="3600", poll_seconds="7", cleaner_retention_seconds="5")
    assert deferred.trigger.serialize()[1] == {
        "hive_acid_conn_id": "hive_acid_default",
        "partitions": [{"database": "d", "table": "u", "partition": None}],
        "deadline": NOW + 3600,
        "poll_seconds": 7.0,
        "cleaner_retention_seconds": 5.0,
    }
    assert deferred.method_name == "execute_complete"
    assert deferred.timeout is not None
    assert deferred.timeout.total_seconds() > 3600


def test_everything_that_is_kept_while_deferred_is_plain_json(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, (CLEANED, WAITING))
    deferred = defer()
    for kept in (deferred.kwargs, deferred.trigger.serialize()[1]):
        assert kept is not None
        assert json.loads(json.dumps(kept)) == kept


def test_after_the_wait_it_goes_on_with_the_same_deadline(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    finds(monkeypatch, (CLEANED, WAITING), (WAITING,), (CLEANED,))
    task = operator(deferrable=True)
    first = defer(cleaning_deadline_seconds=3600)
    clock.seconds += 600
    assert first.kwargs is not None
    with pytest.raises(TaskDeferred) as again:
        task.execute_complete({}, ended("ready", after=3600), **first.kwargs)
    assert again.value.trigger.serialize()[1]["deadline"] == NOW + 3600
    assert again.value.kwargs is not None
    done = task.execute_complete({}, ended("ready", after=3600), **again.value.kwargs)
    assert states(done) == ["cleaned", "cleaned"]


def test_after_the_deadline_it_looks_once_more_and_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, (WAITING,))
    with pytest.raises(AirflowSkipException, match=BLOCKER):
        operator(deferrable=True).execute_complete({}, ended("deadline", after=0), done=[])
    assert len(FakeCleaner.asked) == 1


def test_the_trigger_does_not_wait_for_what_is_kept_for_an_undo(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, (KEPT, KEPT), (KEPT, WAITING))
    assert trigger().look() == []
    assert len(trigger().look()) == 1


def test_an_error_of_the_trigger_fails_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AirflowException, match="^no metastore$"):
        operator(deferrable=True).execute_complete({}, ended("error", "no metastore"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("partitions", "[{'database': 'd'}]"),
        ("partitions", [{"table": "t"}]),
        ("cleaning_deadline_seconds", "tomorrow"),
        ("cleaning_deadline_seconds", -1),
        ("poll_seconds", "often"),
        ("cleaner_retention_seconds", "long"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name_before_anything_is_deleted(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    finds(monkeypatch, ())
    with pytest.raises(AirflowFailException, match=f"^parameter {name}\\b"):
        operator(**{name: value}).execute({})
    assert FakeCleaner.asked == []


@pytest.mark.parametrize("name", AcidCleanerOperator.template_fields)
def test_every_templated_field_is_kept_as_it_is_given(name: str) -> None:
    assert getattr(operator(**{name: "{{ params.x }}"}), name) == "{{ params.x }}"


@pytest.mark.parametrize(("given", "seconds"), [(None, 0.0), ("30", 30.0), (0, 0.0)])
def test_operator_and_trigger_keep_directories_equally_long(
    monkeypatch: pytest.MonkeyPatch, given: object, seconds: float
) -> None:
    finds(monkeypatch, (WAITING,))
    trigger = defer(cleaner_retention_seconds=given).trigger
    assert isinstance(trigger, CleaningTrigger)
    trigger.look()
    assert [settings.cleaner_retention_seconds for settings in FakeCleaner.settings] == [seconds, seconds]


def test_the_configured_retention_holds_where_the_task_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__CLEANER_RETENTION_SECONDS", "90")
    finds(monkeypatch, ())
    operator().execute({})
    assert FakeCleaner.settings[0].cleaner_retention_seconds == 90.0


def test_whether_it_defers_is_airflows_setting_unless_the_task_says() -> None:
    default = inspect.signature(AcidCleanerOperator.__init__).parameters["deferrable"].default
    assert default is conf.getboolean("operators", "default_deferrable", fallback=False)


def trigger(**changes: Any) -> CleaningTrigger:
    arguments = {
        "hive_acid_conn_id": "hive_acid_default",
        "partitions": PARTITIONS,
        "deadline": NOW + 100,
        "poll_seconds": 10.0,
        **changes,
    }
    return CleaningTrigger(**arguments)


def test_a_trigger_is_made_again_from_what_it_says_of_itself() -> None:
    path, arguments = trigger(cleaner_retention_seconds=3.0).serialize()
    assert path == f"{CleaningTrigger.__module__}.{CleaningTrigger.__qualname__}"
    assert set(arguments) == set(inspect.signature(CleaningTrigger.__init__).parameters) - {"self"}
    assert CleaningTrigger(**arguments).serialize() == (path, arguments)


def test_making_a_trigger_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, AssertionError("asked"))
    monkeypatch.delenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT")
    trigger()


def test_the_trigger_fires_once_when_a_partition_can_be_cleaned(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    finds(monkeypatch, (WAITING, WAITING), (WAITING, READY))
    assert events(trigger()) == [ended("ready")]
    assert clock.naps == [10.0, 10.0]


def test_a_wait_asks_for_its_connections_once_however_often_it_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    endpoint = AcidMetastoreHook.endpoint

    def ask(hook: AcidMetastoreHook) -> MetastoreEndpoint:
        asked.append(hook.hive_acid_conn_id)
        return endpoint(hook)

    monkeypatch.setattr(AcidMetastoreHook, "endpoint", ask)
    finds(monkeypatch, (WAITING, WAITING), (WAITING, WAITING), (WAITING, READY))
    assert events(trigger()) == [ended("ready")]
    assert asked == ["hive_acid_default"]


def test_a_wait_checks_the_metastore_once_and_once_more_after_each_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[int] = []

    def check(endpoint: MetastoreEndpoint, client: AcidMetastoreClient) -> Hive:
        checked.append(len(FakeCleaner.asked))
        return client.probe()

    monkeypatch.setattr(MetastoreEndpoint, "check", check)
    waits: Round = (WAITING, WAITING)
    finds(monkeypatch, waits, waits, MetastoreUnavailableError("m", "is away", "wait"), waits, waits, (WAITING, READY))
    assert events(trigger()) == [ended("ready")]
    assert checked == [0, 3], "before the first look, and after the failed third"


def test_the_trigger_fires_when_there_is_nothing_left_to_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, ())
    assert events(trigger()) == [ended("ready")]


def test_the_trigger_waits_before_it_looks_for_the_operator_has_just_looked(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    finds(monkeypatch, (READY, READY))
    events(trigger())
    assert clock.naps == [10.0]


def test_the_trigger_ends_at_the_deadline_and_names_who_blocks(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    finds(monkeypatch, (WAITING, WAITING))
    assert events(trigger(deadline=NOW + 25)) == [ended("deadline", f"d.t/p=1 {BLOCKER}; d.u {BLOCKER}", 25)]
    assert clock.naps == [10.0, 10.0, 5.0]


def test_a_restarted_trigger_keeps_its_deadline(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    finds(monkeypatch, (WAITING, WAITING))
    _, arguments = trigger().serialize()
    clock.seconds += 1000
    assert events(CleaningTrigger(**arguments))[0]["state"] == "deadline"
    assert clock.naps == [0]


BLIP = MetastoreUnavailableError("metastore", "no metastore answers", "start it")


def test_a_blip_is_not_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    blips = [BLIP] * (FAILED_POLLS - 1)
    finds(monkeypatch, *blips, (WAITING, WAITING), *blips, (READY, READY))
    assert events(trigger(deadline=NOW + 10_000)) == [ended("ready", after=10_000)]


def test_a_metastore_that_stays_away_is_one(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    finds(monkeypatch, BLIP)
    assert events(trigger(deadline=NOW + 10_000)) == [ended("error", str(BLIP), 10_000)]
    assert len(clock.naps) == FAILED_POLLS


def test_what_no_wait_can_mend_ends_the_wait(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", "host": ""}))
    ((event),) = events(trigger())
    assert event["state"] == "mistake"
    assert "names no host" in event["message"]
    assert len(clock.naps) == 1
