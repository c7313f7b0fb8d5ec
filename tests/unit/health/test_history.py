"""Each outcome is on record once, whoever merges files meanwhile, and no longer than it is kept."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.health.files import KEPT_DAYS, day_of, now_ms
from airflow_provider_acid.health.history import (
    HistoryRecord,
    RecordMaker,
    TaskPlace,
    failures_since,
)
from airflow_provider_acid.health.json_lines import from_lines, to_lines
from airflow_provider_acid.health.reader import HealthReader
from airflow_provider_acid.health.recording import record_history
from airflow_provider_acid.health.store import MILLISECONDS_PER_DAY, HealthStore
from airflow_provider_acid.plan.plan import CompactionType

PARTITION = Entity("d", "t", "p=1")
TASK = TaskPlace("dag", "run", "compact", 2)
NOW_MS = now_ms()  # One moment for all: midnight may come between two of them.
TODAY = day_of(NOW_MS)


def maker(days_ago: int = 0, token: str = "a") -> RecordMaker:
    return RecordMaker("m", TASK, NOW_MS - days_ago * MILLISECONDS_PER_DAY, token)


def records(days_ago: int = 0, token: str = "a") -> list[HistoryRecord]:
    outcome = Outcome(PARTITION, OutcomeState.COMPACTED, "12 deltas", 3, ("base_0000009_v7",), 100, 60, 9, 1.5)
    return maker(days_ago, token).of_outcomes([DuePartition(PARTITION, CompactionType.MINOR, "asked")], [outcome])


def store(folder: Path) -> HealthStore:
    return HealthStore.at(str(folder / "health"), Storages())


def read(folder: Path) -> list[str]:
    reader = HealthReader(lambda: Storages().open(str(folder / "health")))
    return [record.id for record in reader.health().history]


def test_a_record_is_read_as_it_was_written() -> None:
    made = [*records(), *maker().of_cleanings([Cleaning(PARTITION, 4, CleaningState.KEPT, "stays", ("a", "b"))])]
    assert from_lines(HistoryRecord, to_lines(made), "file") == made
    assert [(each.kind, each.type, each.state, each.seconds, each.deleted) for each in made] == [
        ("compaction", "major", "compacted", 1.5, 0),
        ("cleaning", None, "kept", None, 2),
    ]


def test_failures_are_those_of_one_metastore_that_are_not_too_old() -> None:
    ends = [OutcomeState.FAILED, OutcomeState.REFUSED, OutcomeState.COMPACTED, OutcomeState.SKIPPED]
    outcomes = [Outcome(PARTITION, state, state.value) for state in ends]
    due = [DuePartition(PARTITION, CompactionType.MINOR, "asked")] * len(outcomes)
    cleanings = [Cleaning(PARTITION, 4, state, state.value) for state in (CleaningState.FAILED, CleaningState.KEPT)]
    made = [*maker().of_outcomes(due, outcomes), *maker().of_cleanings(cleanings)]
    old = maker(days_ago=2).of_outcomes(due, outcomes)
    since_ms = NOW_MS - MILLISECONDS_PER_DAY
    assert [(each.kind, each.state) for each in failures_since([*made, *old], "m", since_ms)] == [
        ("compaction", "failed"),
        ("compaction", "refused"),
        ("cleaning", "failed"),
    ]
    assert failures_since(made, "another", since_ms) == []


@pytest.mark.parametrize(
    ("targets", "type"),
    [(("base_9",), "major"), (("delta_1_2", "delete_delta_1_2"), "minor"), ((), "minor")],
)
def test_the_type_is_that_of_what_was_published_or_else_asked_for(targets: tuple[str, ...], type: str) -> None:
    outcome = Outcome(PARTITION, OutcomeState.COMPACTED, "", targets=targets)
    (record,) = maker().of_outcomes([DuePartition(PARTITION, CompactionType.MINOR, "asked")], [outcome])
    assert record.type == type


def test_a_line_that_is_no_record_hides_no_other() -> None:
    lines = [b"{", b"[]", b"{}", to_lines(records()).strip(), b""]
    assert len(from_lines(HistoryRecord, b"\n".join(lines), "file")) == 1


def test_a_record_holds_no_arguments_or_connections() -> None:
    (line,) = to_lines(records()).splitlines()
    assert json.loads(line)["task"] == {"dag_id": "dag", "run_id": "run", "task_id": "compact", "map_index": 2}


def test_what_tasks_write_is_read_newest_first(tmp_path: Path) -> None:
    store(tmp_path).add_history(records(1, "old"))
    record_history(str(tmp_path / "health"), "m", Storages(), TASK, lambda make: make.of_outcomes([], []))
    store(tmp_path).add_history(records(0, "new"))
    assert read(tmp_path) == ["new/0", "old/0"]


def test_days_that_are_over_become_one_file_each_and_nothing_is_lost(tmp_path: Path) -> None:
    for days_ago in (0, 1, 2):
        for token in "abc":
            store(tmp_path).add_history(records(days_ago, f"{token}{days_ago}"))
    before = read(tmp_path)
    store(tmp_path).merge_history(TODAY)
    assert sorted(read(tmp_path)) == sorted(before)
    counts = [len(list(day.iterdir())) for day in sorted((tmp_path / "health" / "history").iterdir())]
    assert counts == [1, 1, 3]


def test_records_that_are_there_twice_are_read_once(tmp_path: Path) -> None:
    """As where a merging process dies before it has deleted what it merged."""
    for _ in range(2):
        store(tmp_path).add_history(records(1, "same"))
    assert read(tmp_path) == ["same/0"]
    store(tmp_path).merge_history(TODAY)
    assert read(tmp_path) == ["same/0"]


def test_old_days_are_forgotten(tmp_path: Path) -> None:
    for days_ago in (KEPT_DAYS - 1, KEPT_DAYS + 2):
        store(tmp_path).add_history(records(days_ago, str(days_ago)))
    store(tmp_path).merge_history(TODAY)
    (left,) = (tmp_path / "health" / "history").iterdir()
    assert date.fromisoformat(left.name) >= TODAY - timedelta(days=KEPT_DAYS)


def test_the_last_compaction_of_a_partition_is_the_newest_that_succeeded(tmp_path: Path) -> None:
    from tests.unit.compaction.evaluated_tables import EvaluatedTables, FakeStorages
    from tests.unit.health.test_recording import METASTORE, evaluate

    evaluate(EvaluatedTables({"t": 2}, FakeStorages()), tmp_path)
    made = [
        HistoryRecord(**{**vars(records()[0]), "metastore": METASTORE, "entity": Entity("d", "t", "p=00001")}
                      | {"id": str(ended), "ended_ms": ended, "state": state})
        for ended, state in ((now_ms() - 3, "compacted"), (now_ms() - 2, "compacted"), (now_ms() - 1, "failed"))
    ]  # fmt: skip
    store(tmp_path).add_history(made)
    reader = HealthReader(lambda: Storages().open(str(tmp_path / "health")))
    rows = {row["partition"]: row["last_compaction_ms"] for row in reader.health().partitions.to_pylist()}
    assert rows == {"p=00000": None, "p=00001": made[1].ended_ms}
