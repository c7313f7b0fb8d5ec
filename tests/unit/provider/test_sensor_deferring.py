"""The sensor's wait in the triggerer: no worker, one look at all tables at a time, an end, and a small answer."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import threading
import time
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferred,
    conf,
)

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.compaction.evaluate.initiator import Evaluation
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.outcomes import DuePartition
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.exceptions import ConfigurationError, MetastoreUnavailableError
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.sensors import compaction as sensor_module
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor
from airflow_provider_acid.triggers import compaction as trigger_module
from airflow_provider_acid.triggers import wait
from airflow_provider_acid.triggers.compaction import DuePartitionsTrigger
from airflow_provider_acid.triggers.wait import FAILED_POLLS, WaitEvent
from tests.unit.provider.waiting import NOW, Clock, ended, events

pytestmark = pytest.mark.usefixtures("hive_4")

NOTHING = Evaluation()
DUE = Evaluation(
    tuple(DuePartition(Entity("d", "t", f"p={n}"), CompactionType.MAJOR, "12 deltas", None) for n in range(5))
)
BLIP = MetastoreUnavailableError("metastore", "no metastore answers", "start it")


class FakeInitiator:
    """Finds what it is told to; the last round goes on for ever."""

    rounds: list[Evaluation | Exception] = []
    asked: list[tuple[TableSelection, CompactionSettings]] = []
    threads: set[int] = set()

    def __init__(
        self, client: object, queue: object, settings: CompactionSettings, writes: object, *, observer: object = None
    ) -> None:
        self._settings = settings

    def evaluate(self, selection: TableSelection) -> Evaluation:
        self.asked.append((selection, self._settings))
        self.threads.add(threading.get_ident())
        found = self.rounds.pop(0) if len(self.rounds) > 1 else self.rounds[0]
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", "host": "not.asked"}))
    for module in (sensor_module, trigger_module):
        monkeypatch.setattr(module, "Initiator", FakeInitiator)
    for module in (sensor_module, trigger_module, wait):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(asyncio, "sleep", clock.sleep_async)
    monkeypatch.setattr(FakeInitiator, "asked", [])
    monkeypatch.setattr(FakeInitiator, "threads", set())
    monkeypatch.setattr(AcidCompactionSensor, "log", logging.getLogger("sensor"), raising=False)
    return clock


def finds(monkeypatch: pytest.MonkeyPatch, *rounds: Evaluation | Exception) -> None:
    monkeypatch.setattr(FakeInitiator, "rounds", list(rounds))


def sensor(**parameters: Any) -> AcidCompactionSensor:
    return AcidCompactionSensor(
        task_id="s", **{"tables": ["d.*"], "deferrable": True, "mode": "poke", "timeout": 100, **parameters}
    )


def defer(**parameters: Any) -> TaskDeferred:
    with pytest.raises(TaskDeferred) as deferred:
        sensor(**parameters).execute({})
    return deferred.value


def arguments_of(deferred: TaskDeferred) -> dict[str, Any]:
    arguments: dict[str, Any] = deferred.trigger.serialize()[1]
    return arguments


READY = ended("ready")


def test_what_is_due_at_once_is_returned_without_deferring(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, DUE)
    assert [len(batch) for batch in sensor(batch_partitions=3).execute({})] == [3, 2]


def test_nothing_due_is_skipped_without_deferring_if_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, NOTHING)
    with pytest.raises(AirflowSkipException):
        sensor(skip_when_nothing_due=True).execute({})


def test_the_wait_is_handed_to_the_triggerer(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, NOTHING)
    deferred = defer(
        tables="d.*, e.f",
        exclude=["d.x"],
        poke_interval=7,
        delta_num_threshold="3",
        candidates="all",
        time_window="00:00-23:59",
        time_zone="Europe/Berlin",
    )
    assert arguments_of(deferred) == {
        "hive_acid_conn_id": "hive_acid_default",
        "tables": ["d.*", "e.f"],
        "exclude": ["d.x"],
        "question": {"delta_num_threshold": "3", "candidates": "all"},
        "deadline": NOW + 100,
        "poll_seconds": 7.0,
        "time_window": "00:00-23:59",
        "time_zone": "Europe/Berlin",
    }
    assert deferred.method_name == "execute_complete"
    assert deferred.timeout is not None
    assert deferred.timeout.total_seconds() > 100


def test_everything_that_is_kept_while_deferred_is_plain_json(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, NOTHING)
    deferred = defer(candidates=Candidates.ALL)
    for kept in (deferred.kwargs, arguments_of(deferred)):
        assert json.loads(json.dumps(kept)) == kept
        assert all(type(item) is not Candidates for item in (kept or {}).get("question", {}).values())


def test_in_worker_and_triggerer_the_same_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, NOTHING)
    trigger = defer(
        exclude="d.x",
        delta_num_threshold="3",
        delta_pct_threshold=0.5,
        override_no_auto_compaction="True",
        serve_foreign_requests=True,
    ).trigger
    assert isinstance(trigger, DuePartitionsTrigger)
    trigger.look()
    in_worker, in_triggerer = FakeInitiator.asked
    assert in_worker == in_triggerer
    assert in_worker[1].thresholds.delta_num_threshold == 3
    assert in_worker[1].serve_foreign_requests


def test_after_the_wait_it_evaluates_again_and_returns_the_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, DUE)
    assert [len(batch) for batch in sensor().execute_complete({}, ended("ready", after=50))] == [5]


def test_what_was_compacted_meanwhile_is_waited_for_again_until_the_same_deadline(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    finds(monkeypatch, NOTHING)
    clock.seconds += 30
    with pytest.raises(TaskDeferred) as again:
        sensor().execute_complete({}, ended("ready", after=50))
    assert arguments_of(again.value)["deadline"] == NOW + 50


def test_the_deadline_is_the_sensors_time_out(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    finds(monkeypatch, NOTHING)
    clock.seconds += 100
    with pytest.raises(AirflowSensorTimeout, match="Nothing was due for compaction within 100 s"):
        sensor().execute_complete({}, ended("deadline"))


def test_what_is_due_at_the_last_moment_is_still_returned(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    finds(monkeypatch, DUE)
    clock.seconds += 100
    assert sensor().execute_complete({}, ended("deadline"))


@pytest.mark.parametrize("event", [ended("deadline"), ended("error", "away")])
def test_soft_fail_skips_after_a_wait_in_vain(monkeypatch: pytest.MonkeyPatch, clock: Clock, event: WaitEvent) -> None:
    finds(monkeypatch, NOTHING)
    clock.seconds += 100
    with pytest.raises(AirflowSkipException):
        sensor(soft_fail=True).resume_execution("execute_complete", {"event": event}, {})


def test_an_error_of_the_trigger_fails_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AirflowException, match="^no metastore$"):
        sensor().execute_complete({}, ended("error", "no metastore"))


def test_without_deferring_it_waits_as_its_mode_says(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, NOTHING)
    assert not sensor(deferrable=False).poke({}).is_done
    with pytest.raises(AirflowSensorTimeout, match="timed out"):
        sensor(deferrable=False, timeout=0).execute({})


def test_whether_it_defers_is_airflows_setting_unless_the_task_says() -> None:
    default = inspect.signature(AcidCompactionSensor.__init__).parameters["deferrable"].default
    assert default is conf.getboolean("operators", "default_deferrable", fallback=False)


@pytest.mark.parametrize("most_batches", [3, 1024])
def test_it_returns_no_more_batches_than_airflow_maps_over(monkeypatch: pytest.MonkeyPatch, most_batches: int) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", str(most_batches))
    finds(monkeypatch, DUE)
    assert len(sensor(batch_partitions=1).execute({})) == min(most_batches, 5)
    finds(monkeypatch, DUE)
    assert [len(batch) for batch in sensor(batch_partitions=2).execute({})] == [2, 2, 1]


# The trigger


def trigger(**changes: Any) -> DuePartitionsTrigger:
    arguments: dict[str, Any] = {
        "hive_acid_conn_id": "hive_acid_default",
        "tables": ["d.*"],
        "exclude": [],
        "question": {"delta_num_threshold": 3},
        "deadline": NOW + 100,
        "poll_seconds": 10.0,
    }
    return DuePartitionsTrigger(**{**arguments, **changes})


def test_a_trigger_is_made_again_from_what_it_says_of_itself() -> None:
    path, arguments = trigger().serialize()
    assert path == f"{DuePartitionsTrigger.__module__}.{DuePartitionsTrigger.__qualname__}"
    assert set(arguments) == set(inspect.signature(DuePartitionsTrigger.__init__).parameters) - {"self"}
    assert DuePartitionsTrigger(**arguments).serialize() == (path, arguments)


def test_making_a_trigger_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT")
    trigger()


def test_it_fires_once_when_something_is_due_and_says_no_more(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    finds(monkeypatch, NOTHING, NOTHING, DUE)
    assert events(trigger()) == [READY]
    assert clock.naps == [10.0, 10.0, 10.0]


def test_it_looks_in_a_thread_and_leaves_the_loop_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, DUE)
    events(trigger())
    assert threading.get_ident() not in FakeInitiator.threads


def test_outside_the_time_window_it_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, DUE)
    hour = time.gmtime(NOW).tm_hour
    closed = f"{(hour + 2) % 24:02d}:00-{(hour + 3) % 24:02d}:00"
    (reason,) = trigger(time_window=closed).look()
    assert reason.startswith(f"the time window {closed} UTC is closed until ")
    assert FakeInitiator.threads == set()


def test_it_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    finds(monkeypatch, NOTHING)
    assert events(trigger(deadline=NOW + 25)) == [ended("deadline", "none of 0 partitions is due", 25)]
    assert clock.naps == [10.0, 10.0, 5.0]


def test_a_blip_is_not_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, *[BLIP] * (FAILED_POLLS - 1), NOTHING, *[BLIP] * (FAILED_POLLS - 1), DUE)
    assert events(trigger(deadline=NOW + 10_000)) == [ended("ready", after=10_000)]


def test_a_metastore_that_stays_away_is_one(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    finds(monkeypatch, BLIP)
    assert events(trigger(deadline=NOW + 10_000)) == [ended("error", str(BLIP), 10_000)]
    assert len(clock.naps) == FAILED_POLLS


def test_what_no_wait_can_mend_ends_the_wait(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    wrong = ConfigurationError("parameter tables", "is empty", "name one")
    finds(monkeypatch, wrong)
    assert events(trigger()) == [ended("mistake", str(wrong))]
    assert len(clock.naps) == 1


def test_a_slow_look_of_one_trigger_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    both_look = threading.Barrier(2, timeout=20)

    def look(self: DuePartitionsTrigger) -> list[str]:
        both_look.wait()
        return []

    monkeypatch.setattr(DuePartitionsTrigger, "look", look)

    async def two() -> list[Any]:
        async def first(of: DuePartitionsTrigger) -> Any:
            return (await anext(of.run())).payload

        return list(await asyncio.gather(first(trigger()), first(trigger())))

    assert asyncio.run(two()) == [READY, READY]
