"""Histories in which readers once lost rows, played step by step: they pass, and fail with the old mistake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.write_ids import ValidTxnList
from airflow_provider_acid.compaction import snapshot
from airflow_provider_acid.compaction.clean import write_ids
from airflow_provider_acid.compaction.recover import dead_results
from airflow_provider_acid.metastore.hive4 import queue as thrift_queue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.plan.partition import MinorPublication
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.acid_history import compactor
from tests.harness.acid_history.looks import WatchedStorage
from tests.harness.acid_history.metastore import ModelMetastore
from tests.harness.acid_history.player import HistoryError, play
from tests.harness.acid_history.steps import (
    Begin,
    Clean,
    Compact,
    Death,
    End,
    FinishCompaction,
    GroupBegins,
    History,
    HiveCleans,
    HiveCompacts,
    HiveFinishes,
    HiveMarks,
    HiveStarts,
    Meanwhile,
    OpenReader,
    SoftDelete,
    StartCompaction,
    Statement,
    TableKind,
    What,
    Write,
)


def insert(*places: int, is_late: bool = False) -> Write:
    return Write((Statement(What.INSERT, places),), is_late=is_late)


def take_later_compactions_for_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_ids, "cleaner_txns", lambda lowest, own, aborted: ValidTxnList(lowest - 1, (), ()))


def leave_read_only_transactions_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AcidMetastoreClient, "_tells_types", False)


def take_removals_for_compactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thrift_queue, "_compactions", list)


class ListedBefore(WatchedStorage):
    """A directory that was listed at the very begin."""

    def __init__(self, storage: WatchedStorage) -> None:
        super().__init__(storage.location, storage.looks)
        self._listing = storage.list()

    def list(self, path: str = "", into: Callable[[str], bool] | None = None) -> Listing:
        return self._listing


def list_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def listed_first(view: Any, name: str, storage: Any, *arguments: Any, **options: Any) -> snapshot.Snapshot:
        return snapshot.take_snapshot(view, name, ListedBefore(storage), *arguments, **options)

    monkeypatch.setattr(compactor, "take_snapshot", listed_first)


def look_as_of_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot.TransactionView, "misses_a_compaction", lambda *_: False)


def mark_before_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Hive's own worker does."""
    fall_silent = ModelMetastore.fall_silent

    def marked(metastore: ModelMetastore, txn: int) -> None:
        fall_silent(metastore, txn)
        for row in [row for row in metastore.rows.values() if row.txn_id == txn]:
            metastore.mark_compacted(row.id)

    monkeypatch.setattr(ModelMetastore, "fall_silent", marked)


def publish_beside_late_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thrift_queue, "_may_count", lambda *_: False)


def take_what_is_committed_for_a_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_results.CommittedResults, "is_unsettled", lambda *_: False)


@dataclass(frozen=True)
class Known:
    """A history, and the mistake with which it fails."""

    history: History
    mistake: Callable[[pytest.MonkeyPatch], None]
    says: str


HIVE_4 = TableKind(4, mixed=MinorPublication.LOCK_FREE)
KNOWN = {
    "a reader begins while a later compaction runs, and the older one is cleaned after it": Known(
        History(
            HIVE_4,
            (
                insert(0, 0, 0),
                insert(0),
                insert(0),
                Write((Statement(What.DELETE, (0,)),)),
                Begin(),
                Compact(CompactionType.MINOR),
                StartCompaction(CompactionType.MAJOR),
                OpenReader(has_lock=False),
                FinishCompaction(),
                End(0),
                Clean(),
            ),
        ),
        take_later_compactions_for_visible,
        "still reads",
    ),
    "a READ_ONLY query reads while everything is compacted and cleaned": Known(
        History(
            HIVE_4,
            (insert(0), insert(1), OpenReader(read_only=True, has_lock=False), Compact(CompactionType.MAJOR), Clean()),
        ),
        leave_read_only_transactions_out,
        "still reads",
    ),
    "what was dropped waits beside a table that is cleaned": Known(
        History(HIVE_4, (insert(0), SoftDelete(), insert(1), Compact(CompactionType.MAJOR), Clean())),
        take_removals_for_compactions,
        "was ended, and its files stay for ever",
    ),
    "a write with an early write id commits while a compaction looks": Known(
        History(
            HIVE_4,
            (
                Begin(has_write_id=True),
                insert(0),
                insert(1),
                Compact(CompactionType.MAJOR, meanwhile=(Meanwhile(3, insert(2, is_late=True)),)),
            ),
        ),
        list_first,
        "were not listed then",
    ),
    "Hive compacts and cleans a partition of a group between the group's first transaction and its own": Known(
        History(
            HIVE_4,
            (
                insert(0),
                insert(1),
                Begin(has_write_id=True),
                Begin(has_write_id=True),
                GroupBegins(has_ended=True),
                HiveCompacts(CompactionType.MAJOR),
                HiveCleans(waits_for_readers_only=True),
                insert(2, is_late=True),
                insert(2, is_late=True),
                Compact(CompactionType.MAJOR),
            ),
        ),
        look_as_of_the_group,
        "are missing",
    ),
    "Hive's worker comes while an attempt is held up before its commit": Known(
        History(
            HIVE_4,
            (
                insert(0),
                insert(1),
                Compact(CompactionType.MINOR, Death.AFTER_PUBLISHING),
                HiveCompacts(CompactionType.MINOR),
                End(0),
            ),
        ),
        mark_before_the_commit,
        "a row id occurs twice",
    ),
    "a reader begins between Hive's compaction and the late commit of one that is older": Known(
        History(
            HIVE_4,
            (
                insert(0),
                insert(1),
                Compact(CompactionType.MAJOR, Death.AFTER_PUBLISHING),
                HiveCompacts(CompactionType.MINOR),
                OpenReader(has_lock=False),
                End(0),
                Clean(),
            ),
        ),
        mark_before_the_commit,
        "still reads",
    ),
    "Hive's worker is at work while an attempt is held up before its commit": Known(
        History(
            HIVE_4,
            (
                insert(0),
                insert(1),
                Compact(CompactionType.MINOR, Death.AFTER_PUBLISHING),
                HiveStarts(CompactionType.MINOR),
                End(0),
                HiveFinishes(),
            ),
        ),
        mark_before_the_commit,
        "a row id occurs twice",
    ),
    "Hive's worker commits after our transaction was opened, and its Cleaner counts what the dead left": Known(
        History(
            HIVE_4,
            (
                insert(0),
                insert(1),
                Compact(
                    CompactionType.MAJOR,
                    Death.AFTER_PUBLISHING,
                    (Meanwhile(1, HiveMarks(CompactionType.MINOR)), Meanwhile(6, HiveFinishes())),
                ),
                HiveCleans(waits_for_readers_only=True),
                insert(2),
            ),
        ),
        publish_beside_late_commits,
        "are missing",
    ),
    "an attempt died after its commit": Known(
        History(
            HIVE_4,
            (
                insert(0),
                insert(1),
                Compact(CompactionType.MAJOR, Death.BEFORE_ITS_END),
                insert(2),
                Compact(CompactionType.MAJOR),
                Clean(),
            ),
        ),
        take_what_is_committed_for_a_claim,
        "is taken for dead, but transaction",
    ),
}


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_nobody_loses_a_row(known: Known, tmp_path: Path) -> None:
    assert play(known.history, tmp_path)["directories deleted"] > 0


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_the_old_mistake_is_noticed(known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known.mistake(monkeypatch)
    with pytest.raises(HistoryError, match=known.says):
        play(known.history, tmp_path)
