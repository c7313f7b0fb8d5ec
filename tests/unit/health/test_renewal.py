"""After work on a partition its figures are those of the partition as it is then, also where nobody evaluates it."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Collection
from pathlib import Path
from typing import cast

import pyarrow.parquet as pq
import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.compaction.evaluate.initiator import EvaluationObserver
from airflow_provider_acid.compaction.evaluate.looking_again import look_again
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.health import recorder, recording, renewal
from airflow_provider_acid.health.files import now_ms
from airflow_provider_acid.health.reader import HealthReader
from airflow_provider_acid.health.recording import record_renewed, recording_evaluation
from airflow_provider_acid.health.store import HealthStore
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.storages.local import LocalStorage
from airflow_provider_acid.storages.small_files import SIDE_FILE_BYTES
from tests.unit.compaction.evaluated_tables import EvaluatedTables, FakeStorages, deltas, entity
from tests.unit.health.test_recording import METASTORE, evaluate, files, reader_at, rows

OTHER = "other_metastore"
FIGURES = ("state", "deltas", "base_bytes", "obsolete_bytes")
DUE = ("due_major", 3, 0, 0)
PUBLISHED = ("healthy", 0, 9, 300)
CLEANED = ("healthy", 0, 9, 0)

COMPACTED = Listing(
    (FileEntry("base_0000003_v0000009/bucket_00000", 9), *deltas(3).files),
    ("base_0000003_v0000009", *deltas(3).directories),
)
WITHOUT_LEFTOVERS = Listing(COMPACTED.files[:1], COMPACTED.directories[:1])


class Site:
    """Tables whose partitions hold three deltas each, until something becomes of one."""

    def __init__(self, folder: Path, partitions: dict[str, int | None], *, queue_holds: bool = False) -> None:
        self.folder = folder
        self.listings: dict[str, Listing] = {}
        storages = FakeStorages(listing=lambda location: self.listings.get(location, deltas(3)))
        self.tables = EvaluatedTables(partitions, storages)

    def becomes(self, listing: Listing, *entities: Entity) -> None:
        """Work is done on these partitions, and they are looked at again."""
        for each in entities:
            self.listings["/".join(filter(None, (self.tables.client.warehouse, each.table, each.partition)))] = listing
        self.renew(entities)
        # Times are kept in milliseconds; what follows is later.
        then = now_ms()
        while now_ms() == then:
            pass

    def renew(self, entities: Collection[Entity], metastore: str = METASTORE) -> None:
        record_renewed(
            str(self.folder / "health"), metastore, Storages(), lambda observer: self.look(entities, observer)
        )

    def look(self, entities: Collection[Entity], observer: EvaluationObserver) -> None:
        queue = cast(CompactionQueue, self.tables.queue)
        look_again(self.tables.client, queue, self.tables.settings, entities, observer)

    def figures(self, table: str = "t") -> dict[object, tuple[object, ...]]:
        found = rows(self.folder, *FIGURES)
        assert len({row[:2] for row in found}) == len(found), "each partition once"
        return {row[1]: row[2:] for row in found if row[0] == table}

    def renewed_files(self) -> list[Path]:
        return [path for path in files(self.folder) if "renewed" in path.parts]


def test_from_due_over_published_to_cleaned_the_figures_are_those_of_the_moment(tmp_path: Path) -> None:
    site = Site(tmp_path, {"t": 2})
    evaluate(site.tables, tmp_path)
    assert site.figures() == {"p=00000": DUE, "p=00001": DUE}
    site.becomes(COMPACTED, entity("t", 1))
    assert site.figures() == {"p=00000": DUE, "p=00001": PUBLISHED}
    site.becomes(WITHOUT_LEFTOVERS, entity("t", 1))
    assert site.figures() == {"p=00000": DUE, "p=00001": CLEANED}
    (directory,) = reader_at(tmp_path).directories(METASTORE, entity("t", 1))
    assert (directory["path"], directory["state"]) == ("base_0000003_v0000009", "current")
    assert len(reader_at(tmp_path).directories(METASTORE, entity("t", 0))) == 3


def test_a_table_that_nobody_ever_evaluated_is_shown_after_its_compaction(tmp_path: Path) -> None:
    site = Site(tmp_path, {"t": 3, "u": None})
    site.becomes(COMPACTED, entity("t", 1), entity("u"))
    assert (site.figures("t"), site.figures("u")) == ({"p=00001": PUBLISHED}, {"": PUBLISHED})
    assert len(reader_at(tmp_path).directories(METASTORE, entity("u"))) == 4
    assert reader_at(tmp_path).directories(METASTORE, entity("t", 2)) == []


def test_a_task_writes_one_file_whatever_number_of_partitions_and_tables_it_worked_on(tmp_path: Path) -> None:
    site = Site(tmp_path, {"t": 30, "u": None, "v": 9})
    site.becomes(COMPACTED, *(entity("t", n) for n in range(30)), entity("u"), *(entity("v", n) for n in range(9)))
    assert len(rows(tmp_path)) == 40
    assert len(files(tmp_path)) == 1


def test_figures_of_one_metastore_are_not_those_of_another(tmp_path: Path) -> None:
    site = Site(tmp_path, {"t": 1})
    evaluate(site.tables, tmp_path)
    site.listings[f"{site.tables.client.warehouse}/t/p=00000"] = COMPACTED
    site.renew([entity("t", 0)], OTHER)
    found = reader_at(tmp_path).health().partitions.to_pylist()
    assert {row["metastore"]: row["state"] for row in found} == {METASTORE: "due_major", OTHER: "healthy"}
    assert len(reader_at(tmp_path).directories(METASTORE, entity("t", 0))) == 3


def test_the_next_evaluation_takes_over_the_tables_it_looks_at_and_leaves_the_others(tmp_path: Path) -> None:
    site = Site(tmp_path, {"t": 2, "u": 2})
    site.becomes(COMPACTED, entity("t", 0), entity("u", 1))
    site.becomes(WITHOUT_LEFTOVERS, entity("u", 1))
    evaluate(site.tables, tmp_path, "d.t")
    assert site.figures("t") == {"p=00000": PUBLISHED, "p=00001": DUE}
    assert site.figures("u") == {"p=00001": CLEANED}
    assert len(site.renewed_files()) == 1
    (left,) = site.renewed_files()
    evaluate(site.tables, tmp_path, "d.t")
    assert site.renewed_files() == [left], "what an evaluation need not change is not written anew"
    evaluate(site.tables, tmp_path)
    assert (site.renewed_files(), len(rows(tmp_path))) == ([], 4)


def test_a_partition_that_was_dropped_goes_with_the_next_evaluation(tmp_path: Path) -> None:
    site = Site(tmp_path, {"t": 3})
    site.becomes(COMPACTED, entity("t", 2))
    site.tables.client.partitions = {"t": 2}
    evaluate(site.tables, tmp_path)
    assert set(site.figures()) == {"p=00000", "p=00001"}


def test_what_changed_while_an_evaluation_ran_is_newer_than_what_that_one_saw(tmp_path: Path) -> None:
    site = Site(tmp_path, {"t": 2})
    location = str(tmp_path / "health")
    with recording_evaluation(location, METASTORE, Storages(), looks_at_all=True) as site.tables.observer:
        site.tables.evaluate()
        site.becomes(COMPACTED, entity("t", 0))
    assert site.figures() == {"p=00000": PUBLISHED, "p=00001": DUE}


def test_of_two_looks_in_one_millisecond_the_one_after_the_work_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = now_ms()
    monkeypatch.setattr(recorder, "now_ms", lambda: then)
    monkeypatch.setattr(renewal, "now_ms", lambda: then)
    site = Site(tmp_path, {"t": 2})
    with recording_evaluation(str(tmp_path / "health"), METASTORE, Storages(), looks_at_all=True) as observer:
        site.tables.observer = observer
        site.tables.evaluate()
        site.becomes(COMPACTED, entity("t", 0))
    assert site.figures() == {"p=00000": PUBLISHED, "p=00001": DUE}


@pytest.mark.parametrize("looks_at_all", [True, False])
def test_a_partition_that_is_passed_over_keeps_its_renewed_figures(tmp_path: Path, looks_at_all: bool) -> None:
    site = Site(tmp_path, {"t": 2})
    evaluate(site.tables, tmp_path)
    site.becomes(COMPACTED, entity("t", 0))

    def fail(location: str) -> Listing:
        raise StorageError(location, "permission denied", "grant it")

    unreadable = EvaluatedTables({"t": 2}, FakeStorages(listing=fail), recorded=None if looks_at_all else {"t": set()})
    evaluate(unreadable, tmp_path, looks_at_all=looks_at_all)
    state = "held" if looks_at_all else "healthy"
    assert site.figures()["p=00000"] == (state, *PUBLISHED[1:])


def test_where_nobody_evaluates_many_files_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewal, "MERGED_FILES", 4)
    site = Site(tmp_path, {"t": 9})
    counts = []
    for number in range(9):
        site.becomes(COMPACTED, entity("t", number))
        counts.append(len(files(tmp_path)))
    assert counts == [1, 2, 3, 1, 2, 3, 1, 2, 3]
    assert len(site.figures()) == 9


def test_a_partition_that_nobody_has_touched_for_long_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewal, "MERGED_FILES", 1)
    monkeypatch.setattr(renewal, "KEPT_DAYS", -1)
    site = Site(tmp_path, {"t": 1})
    site.becomes(COMPACTED, entity("t", 0))
    assert files(tmp_path) == []


def test_a_file_of_many_partitions_is_merged_however_large_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, {"t": 3})
    site.becomes(COMPACTED, entity("t", 0))
    (large,) = site.renewed_files()
    filling = {"filling": os.urandom(SIDE_FILE_BYTES).hex()}
    pq.write_table(pq.read_table(large).replace_schema_metadata(filling), large)
    assert large.stat().st_size > SIDE_FILE_BYTES
    monkeypatch.setattr(renewal, "MERGED_FILES", 2)
    site.becomes(COMPACTED, entity("t", 1))
    assert not large.exists()
    assert set(site.figures()) == {"p=00000", "p=00001"}


def test_files_that_somebody_else_merges_at_the_same_time_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, {"t": 3})
    site.becomes(COMPACTED, entity("t", 0))
    (first,) = files(tmp_path)
    listed = HealthStore.renewed_files

    def list_then_lose(store: HealthStore, metastore: str) -> object:
        found = listed(store, metastore)
        first.unlink()
        return found

    monkeypatch.setattr(HealthStore, "renewed_files", list_then_lose)
    monkeypatch.setattr(renewal, "MERGED_FILES", 2)
    site.becomes(COMPACTED, entity("t", 1))
    assert set(site.figures()) == {"p=00001"}


def test_a_process_that_dies_before_it_removes_what_it_has_merged_shows_no_partition_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewal, "MERGED_FILES", 2)
    monkeypatch.setattr(LocalStorage, "delete", lambda storage, paths: None)
    site = Site(tmp_path, {"t": 2})
    for listing in (COMPACTED, WITHOUT_LEFTOVERS):
        site.becomes(listing, entity("t", 0), entity("t", 1))
    assert len(files(tmp_path)) == 3
    assert site.figures() == {"p=00000": CLEANED, "p=00001": CLEANED}
    assert len(reader_at(tmp_path).directories(METASTORE, entity("t", 0))) == 1


def test_a_reader_sees_renewed_figures_when_it_looks_again(tmp_path: Path) -> None:
    seconds = [0.0]
    site = Site(tmp_path, {"t": 1})
    evaluate(site.tables, tmp_path)
    reader = HealthReader(lambda: Storages().open(str(tmp_path / "health")), clock=lambda: seconds[0])
    assert reader.health().partitions["state"].to_pylist() == ["due_major"]
    site.becomes(COMPACTED, entity("t", 0))
    seconds[0] = 6.0
    assert reader.health().partitions["state"].to_pylist() == ["healthy"]
    assert len(reader.directories(METASTORE, entity("t", 0))) == 4


# Nothing depends on it


def test_without_a_location_nobody_looks_again(tmp_path: Path) -> None:
    def look(observer: EvaluationObserver) -> None:
        raise AssertionError("looked")

    record_renewed("", METASTORE, Storages(), look)


def test_a_look_that_fails_is_a_warning_and_the_old_figures_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site(tmp_path, {"t": 1})
    evaluate(site.tables, tmp_path)
    site.tables.client.on_call = lambda name: (_ for _ in ()).throw(KeyError("odd"))
    site.renew([entity("t", 0)])
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert site.figures() == {"p=00000": DUE}


def test_a_silent_metastore_is_waited_for_no_longer_than_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answered = threading.Event()
    monkeypatch.setattr(recording, "RENEWAL_SECONDS", 0.05)
    record_renewed(
        str(tmp_path / "health"), METASTORE, Storages(), lambda observer: None if answered.wait(30) else None
    )
    answered.set()
    assert "metastore, storage or [hive_acid] health_location does not answer within 0.05 s" in caplog.text
