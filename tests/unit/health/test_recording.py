"""What an evaluation saw is read back as it was, each partition once, and no evaluation ever notices."""

from __future__ import annotations

import errno
import io
import logging
import os
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.exceptions import MetastoreUnavailableError, StorageError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.health import reader as reader_module
from airflow_provider_acid.health import recorder, recording
from airflow_provider_acid.health.arrow_form import ROW_GROUP
from airflow_provider_acid.health.files import newest_files
from airflow_provider_acid.health.reader import HealthReader
from airflow_provider_acid.health.recording import recording_evaluation
from airflow_provider_acid.health.store import HealthStore
from airflow_provider_acid.storages.local import LocalStorage
from tests.unit.compaction.evaluated_tables import EvaluatedTables, FakeStorages, deltas, entity
from tests.unit.compaction.test_initiator import tables_of_all_sorts

METASTORE = "hive_acid_default"


def reader_at(folder: Path) -> HealthReader:
    return HealthReader(lambda: Storages().open(str(folder / "health")))


def evaluate(site: EvaluatedTables, folder: Path, *include: str, looks_at_all: bool = True) -> Any:
    with recording_evaluation(str(folder / "health"), METASTORE, Storages(), looks_at_all=looks_at_all) as observer:
        site.observer = observer
        return site.evaluate(*include)


def rows(folder: Path, *columns: str) -> list[tuple[object, ...]]:
    found = reader_at(folder).health().partitions.to_pylist()
    return sorted(tuple(row[name] for name in ("table", "partition", *columns)) for row in found)


def files(folder: Path) -> list[Path]:
    return sorted((folder / "health").rglob("*.parquet"))


def test_every_partition_is_on_record_once_with_what_was_decided(tmp_path: Path) -> None:
    site = tables_of_all_sorts()
    evaluation = evaluate(site, tmp_path)
    found = {(table, partition): state for table, partition, state in rows(tmp_path, "state")}
    assert len(found) == len(rows(tmp_path)) == 70 + 1 + 9
    evaluated = [item for item in evaluation.due if item.request_id is None]
    due = {(item.entity.table, item.entity.partition or ""): f"due_{item.type.value}" for item in evaluated}
    assert {name: state for name, state in found.items() if str(state).startswith("due")} == due
    assert found[("big", "p=00003")] == found[("big", "p=00010")] == found[("big", "p=00045")] == "held"
    assert found[("big", "p=00005")] == "held"
    assert found[("big", "p=00001")] == "healthy"


@pytest.mark.parametrize(
    ("number", "reason"),
    [(3, "the last 2 compactions failed"), (5, "permission denied"), (10, "its request waits"), (6, "delta_odd")],
)
def test_a_partition_that_is_left_alone_says_why(tmp_path: Path, number: int, reason: str) -> None:
    evaluate(tables_of_all_sorts(), tmp_path)
    reasons = {name: text for table, name, text in rows(tmp_path, "reason") if table == "big"}
    assert reason in str(reasons[f"p={number:05d}"])


def test_a_partition_that_is_due_but_refused_is_held_for_the_reason_of_the_refusal(tmp_path: Path) -> None:
    odd = Listing(tuple(FileEntry(f"{name}/odd", 9) for name in deltas(3).directories), deltas(3).directories)
    evaluation = evaluate(EvaluatedTables({"t": None}, FakeStorages(listing=lambda location: odd)), tmp_path)
    assert evaluation.due == ()
    ((_, _, state, reason),) = rows(tmp_path, "state", "reason")
    assert (state, reason) == ("held", evaluation.skipped[0])


def test_the_figures_and_directories_are_those_of_the_listing(tmp_path: Path) -> None:
    listing = Listing(
        (FileEntry("base_0000004/bucket_00000", 1000), *deltas(3).files, FileEntry("delta_0000005_0000005/b", 7)),
        ("base_0000004", *deltas(3).directories, "delta_0000005_0000005"),
    )
    site = EvaluatedTables({"t": None}, FakeStorages(listing=lambda location: listing))
    evaluate(site, tmp_path)
    columns = ("deltas", "base_bytes", "delta_bytes", "obsolete_directories", "obsolete_bytes", "directory_count")
    assert rows(tmp_path, *columns) == [("t", "", 1, 1000, 7, 3, 300, 5)]
    found = reader_at(tmp_path).directories(METASTORE, Entity("d", "t"))
    assert [(each["path"], each["kind"], each["size_bytes"], each["state"]) for each in found] == [
        ("delta_0000001_0000001_0000", "delta", 100, "obsolete"),
        ("delta_0000002_0000002_0000", "delta", 100, "obsolete"),
        ("delta_0000003_0000003_0000", "delta", 100, "obsolete"),
        ("base_0000004", "base", 1000, "current"),
        ("delta_0000005_0000005", "delta", 7, "current"),
    ]


def test_the_next_evaluation_replaces_the_tables_it_looks_at_and_no_others(tmp_path: Path) -> None:
    site = EvaluatedTables({"t": 4, "u": 2}, FakeStorages())
    evaluate(site, tmp_path)
    before = files(tmp_path)
    site.client.partitions = {"t": 3, "u": 2}
    evaluate(site, tmp_path, "d.t")
    assert [table for table, _ in rows(tmp_path)] == ["t"] * 3 + ["u"] * 2
    assert len(before) == len(files(tmp_path)) == 2
    assert len(set(before) & set(files(tmp_path))) == 1


def test_a_partition_that_is_passed_over_keeps_its_figures_and_says_so(tmp_path: Path) -> None:
    site = EvaluatedTables({"t": 2}, FakeStorages())
    evaluate(site, tmp_path)

    def fail(location: str) -> Listing:
        raise StorageError(location, "cannot be listed", "ask")

    site.settings = EvaluatedTables({}, FakeStorages(listing=fail)).settings
    evaluate(site, tmp_path)
    assert [row[:4] for row in rows(tmp_path, "state", "deltas")] == [
        ("t", "p=00000", "held", 3),
        ("t", "p=00001", "held", 3),
    ]


def test_a_look_at_written_partitions_keeps_the_others_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(EvaluatedTables({"t": 3}, FakeStorages()), tmp_path)
    written = EvaluatedTables({"t": 3}, FakeStorages(listing=lambda _: deltas(1)), recorded={"t": {"p=00001"}})
    evaluate(written, tmp_path, looks_at_all=False)
    assert [count for _, _, count in rows(tmp_path, "deltas")] == [3, 1, 3]
    monkeypatch.setattr(recorder, "UNSEEN_DAYS", -1)
    evaluate(written, tmp_path, looks_at_all=False)
    assert [partition for _, partition in rows(tmp_path)] == ["p=00001"]


def test_thousands_of_partitions_go_to_the_file_in_groups_and_none_is_missed(tmp_path: Path) -> None:
    evaluate(EvaluatedTables({"t": 2 * ROW_GROUP + 1}, FakeStorages()), tmp_path)
    assert len(set(rows(tmp_path))) == 2 * ROW_GROUP + 1
    assert len(reader_at(tmp_path).directories(METASTORE, entity("t", 1999))) == 3


def test_a_reader_sees_a_new_file_when_it_looks_again(tmp_path: Path) -> None:
    seconds = [0.0]
    (tmp_path / "health").mkdir()
    reader = HealthReader(lambda: Storages().open(str(tmp_path / "health")), clock=lambda: seconds[0])
    assert reader.health().partitions.num_rows == 0
    evaluate(EvaluatedTables({"t": 3}, FakeStorages()), tmp_path)
    assert reader.health().partitions.num_rows == 0
    seconds[0] = 6.0
    assert reader.health().partitions.num_rows == 3
    assert "directories" not in reader.health().partitions.column_names


def test_directories_are_found_also_when_their_file_was_replaced_a_moment_ago(tmp_path: Path) -> None:
    site = EvaluatedTables({"t": 1}, FakeStorages())
    evaluate(site, tmp_path)
    reader = HealthReader(lambda: Storages().open(str(tmp_path / "health")), clock=lambda: 0.0)
    reader.health()
    evaluate(site, tmp_path)
    assert len(reader.directories(METASTORE, entity("t", 0))) == 3


def test_of_several_files_of_a_table_the_newest_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a process died before it had removed the old one."""
    monkeypatch.setattr(LocalStorage, "delete", lambda storage, paths: None)
    for count in (2, 5, 3):
        evaluate(EvaluatedTables({"t": count}, FakeStorages()), tmp_path)
    assert (len(files(tmp_path)), len(rows(tmp_path))) == (3, 3)
    newest = newest_files(str(path.relative_to(tmp_path / "health")) for path in reversed(files(tmp_path)))
    assert [file.path.rpartition("/")[2] for file in newest.values()] == [files(tmp_path)[-1].name]


@pytest.mark.parametrize("name", ["a.b", "ü/../x", "50%", "_x", "a+b"])
def test_any_name_of_a_connection_makes_a_file_that_is_found_again(tmp_path: Path, name: str) -> None:
    site = EvaluatedTables({"t": None}, FakeStorages())
    with recording_evaluation(str(tmp_path / "health"), name, Storages(), looks_at_all=True) as observer:
        site.observer = observer
        site.evaluate()
    assert reader_at(tmp_path).health().partitions["metastore"].to_pylist() == [name]
    assert len(reader_at(tmp_path).directories(name, Entity("d", "t"))) == 3


# Nothing depends on it


def test_without_a_location_nothing_is_observed_or_written(tmp_path: Path) -> None:
    with recording_evaluation("", METASTORE, Storages(), looks_at_all=True) as observer:
        assert observer is None
    assert list(tmp_path.iterdir()) == []


def test_a_location_that_cannot_be_written_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = EvaluatedTables({"t": 2}, FakeStorages())
    with recording_evaluation(str(tmp_path / "no" / "parent"), METASTORE, Storages(), looks_at_all=True) as observer:
        site.observer = observer
        assert len(site.evaluate().evaluated) == 2
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "does not exist" in caplog.text


def test_an_error_while_it_takes_things_down_is_one_warning_and_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object, healths: Sequence[object] = ()) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(recorder, "partition_health", fail)
    evaluation = evaluate(EvaluatedTables({"t": 5}, FakeStorages()), tmp_path)
    assert len(evaluation.evaluated) == 5
    assert len(caplog.records) == 1
    assert not (tmp_path / "health").exists()


def test_many_small_tables_take_none_of_the_files_that_a_process_may_have_open(tmp_path: Path) -> None:
    site = EvaluatedTables({f"t{number}": 3 for number in range(50)}, FakeStorages())
    opened: set[int] = set()
    site.client.on_call = lambda name: opened.add(len(os.listdir("/dev/fd")))
    assert len(evaluate(site, tmp_path).evaluated) == 150
    assert max(opened) - min(opened) < 10
    assert len(rows(tmp_path)) == 150


class FullDisk(io.BytesIO):
    """Takes a file's first bytes, and no more."""

    def write(self, data: Any) -> int:
        if self.tell():
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


def test_a_full_disk_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", lambda *args, **options: FullDisk())
    with recording_evaluation(str(tmp_path / "health"), METASTORE, Storages(), looks_at_all=True) as observer:
        assert observer is not None
        for table in ("t", "u", "v"):
            observer.passed_over(entity(table), "odd")
    assert ["No space left" in record.getMessage() for record in caplog.records] == [True]


def test_a_silent_store_is_waited_for_no_longer_than_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answered = threading.Event()
    monkeypatch.setattr(HealthStore, "at", lambda location, storages: answered.wait(30))
    monkeypatch.setattr(recording, "PARTITIONS_SECONDS", 0.05)
    assert len(evaluate(EvaluatedTables({"t": 5}, FakeStorages()), tmp_path).evaluated) == 5
    answered.set()
    assert "does not answer within 0.05 s" in caplog.text


def test_an_evaluation_that_fails_publishes_nothing(tmp_path: Path) -> None:
    site = EvaluatedTables({"t": 5}, FakeStorages())
    silent = MetastoreUnavailableError("metastore", "does not answer", "start it")
    site.client.on_call = lambda name: (_ for _ in ()).throw(silent) if name == "get_partitions" else None
    with pytest.raises(MetastoreUnavailableError):
        evaluate(site, tmp_path)
    assert not (tmp_path / "health").exists()


def test_a_table_whose_name_no_storage_takes_keeps_no_other_from_the_page(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    evaluate(EvaluatedTables({"a": None, "b" * 254: None, "c": None}, FakeStorages()), tmp_path)
    assert [table for table, _ in rows(tmp_path)] == ["a", "c"]
    assert "its name is too long" in caplog.text


def test_a_storage_that_does_not_answer_is_waited_for_once_by_all_who_ask() -> None:
    """Each who waits holds one of the few threads that serve Airflow's API."""
    asked: list[None] = []
    told: list[str] = []
    waits = threading.Event()

    def open_storage() -> Any:
        asked.append(None)
        waits.wait(10)
        raise StorageError("hdfs://nn", "does not answer in time", "see how it is")

    reader = HealthReader(open_storage)

    def ask() -> None:
        with pytest.raises(StorageError) as error:
            reader.health()
        told.append(error.value.reason)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    waits.set()
    for thread in threads:
        thread.join(10)
    assert (len(asked), told) == (1, ["does not answer in time"] * 5)


def test_nobody_waits_long_for_another_who_waits_for_the_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "WAIT_SECONDS", 0.05)
    hangs, ends = threading.Event(), threading.Event()

    def open_storage() -> Any:
        hangs.set()
        ends.wait(10)
        return Storages().open("/")

    reader = HealthReader(open_storage)
    first = threading.Thread(target=reader.health, daemon=True)
    monkeypatch.setattr(reader, "_refresh", lambda storage: None)
    first.start()
    assert hangs.wait(10)
    with pytest.raises(StorageError, match="is being read by another request"):
        reader.health()
    ends.set()
    first.join(10)
