"""Which partitions the sensor's evaluation finds, and why it leaves the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.evaluate import failures
from airflow_provider_acid.compaction.evaluate.initiator import Evaluation
from airflow_provider_acid.compaction.outcomes import QUEUE_PROPERTIES, OutcomeState
from airflow_provider_acid.exceptions import ConfigurationError, ObjectNotFoundError, UnsupportedTableError
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.plan.thresholds import ENROLLED, Thresholds
from tests.integration.compaction_site import ON_BOTH_METASTORES, AcidTable, Site

COUNT = "compactorthreshold.hive.compactor.delta.num.threshold"
RATIO = "compactorthreshold.hive.compactor.delta.pct.threshold"


NOT_ENROLLED = {ENROLLED: "false"}
"""Not even where the site leaves every table to us."""


def inserts(site: Site, name: str = "t", count: int = 3, **options: Any) -> AcidTable:
    table = site.table(name, **options)
    for value in range(count):
        table.insert(value)
    return table


def names(evaluation: Evaluation) -> list[str]:
    return [
        f"{due.entity.table}/{due.entity.partition}" if due.entity.partition else due.entity.table
        for due in evaluation.due
    ]


def hives_defaults(site: Site) -> Site:
    site.settings = replace(site.settings, thresholds=Thresholds())
    return site


def test_a_tables_own_thresholds_go_before_the_general_ones(site: Site) -> None:
    hives_defaults(site)
    inserts(site, "usual")
    inserts(site, "strict", properties={COUNT: "2"})
    inserts(site, "lax", count=12, properties={COUNT: "20"})
    inserts(site, "many", count=11)
    found = site.evaluate()
    assert names(found) == ["many", "strict"], "worst first"
    assert [due.reason for due in found.due] == ["major: 11 deltas > 10; no base", "major: 3 deltas > 2; no base"]
    assert {item.entity.table: item.decision.delta_count for item in found.evaluated} == {
        "usual": 3,
        "strict": 3,
        "lax": 12,
        "many": 11,
    }


def test_a_small_delta_beside_a_big_base_is_due_by_the_tables_own_ratio_only(site: Site) -> None:
    hives_defaults(site)
    for name, properties in (("usual", {}), ("strict", {RATIO: "0.00001"})):
        table = inserts(site, name, properties=properties)
        table.write().insert(*(number * 2654435761 % 2**40 for number in range(20_000))).commit()
        assert site.compact(table.entity()).state is OutcomeState.COMPACTED
        site.clean(table.entity())
        table.insert(1)
    found = site.evaluate()
    assert names(found) == ["strict"]
    assert found.due[0].reason.startswith("major: ratio 0.")


def test_the_worst_partition_comes_first(site: Site) -> None:
    table = site.table(partitions=["p=a", "p=b", "p=c", "p=d"])
    for partition, count in (("p=a", 2), ("p=b", 4), ("p=c", 1), ("p=d", 3)):
        for value in range(count):
            table.insert(value, partition=partition)
    assert names(site.evaluate()) == ["t/p=b", "t/p=d", "t/p=a"]


@pytest.mark.parametrize("name", ["no_auto_compaction", "NO_AUTO_COMPACTION"])
def test_a_table_with_no_auto_compaction_is_left_alone_and_the_reason_says_so(site: Site, name: str) -> None:
    inserts(site, properties={**NOT_ENROLLED, name: "true"})
    found = site.evaluate()
    assert found.due == ()
    assert found.skipped == (f"table {site.database}.t: table property no_auto_compaction=true",)


def test_a_database_with_no_auto_compaction_goes_before_its_tables(site: Site) -> None:
    inserts(site, "plain", properties=NOT_ENROLLED)
    inserts(site, "wants_it", properties={**NOT_ENROLLED, "no_auto_compaction": "false"})
    inserts(site, "enrolled", properties={ENROLLED: "true"})
    site.set_database_properties({"no_auto_compaction": "true"})
    found = site.evaluate()
    assert names(found) == ["enrolled"]
    assert found.skipped == tuple(
        f"table {site.database}.{name}: database property no_auto_compaction=true" for name in ("plain", "wants_it")
    )


def test_a_table_that_is_enrolled_is_compacted_although_no_auto_compaction_is_set(site: Site) -> None:
    inserts(site, properties={"no_auto_compaction": "true", ENROLLED: "true"})
    assert names(site.evaluate()) == ["t"]


@pytest.mark.parametrize(
    ("override", "by_name", "due"),
    [(True, True, ["t"]), (True, False, []), (False, True, []), (False, False, [])],
)
def test_the_override_holds_for_tables_named_without_wildcards(
    site: Site, override: bool, by_name: bool, due: list[str]
) -> None:
    inserts(site, properties={**NOT_ENROLLED, "no_auto_compaction": "true"})
    site.settings = replace(site.settings, override_no_auto_compaction=override)
    assert names(site.evaluate(f"{site.database}.{'t' if by_name else '*'}")) == due


@ON_BOTH_METASTORES
def test_after_two_failures_in_a_row_a_partition_is_left_until_somebody_compacts_it_or_a_week_has_passed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = inserts(site)

    def fail(plan: object) -> CompactionResult:
        return CompactionResult("", "", table.entity(), "disk full", (), 0.0)

    for _ in range(2):
        assert names(site.evaluate()) == ["t"]
        assert site.compact(table.entity(), job=fail).state is OutcomeState.FAILED
    found = site.evaluate()
    assert found.due == ()
    assert found.skipped == (
        f"{table.entity()}: the last 2 compactions failed; a week after the last it is tried again. Remedy: remove the "
        "cause, then compact it by the DAG acid_compact_table with type major or minor.",
    )
    *_, last = site.rows(table.entity())
    assert last.end_ms is not None
    assert 0 <= site.client.server_now_ms() - last.end_ms < 60_000, "both are of one clock"
    with monkeypatch.context() as passed:
        passed.setattr(failures, "FAILED_RETRY_SECONDS", -1.0)
        assert names(site.evaluate()) == ["t"]
    assert site.compact(table.entity()).state is OutcomeState.COMPACTED
    site.clean(table.entity())
    table.insert(8)
    table.insert(9)
    assert names(site.evaluate()) == ["t"]


def test_a_refusal_does_not_count_as_a_failure(site: Site) -> None:
    table = inserts(site)
    site.set_properties(table, {"no_cleanup": "true"})
    for _ in range(3):
        assert site.compact(table.entity()).state is OutcomeState.REFUSED
    site.set_properties(table, {"no_cleanup": "false"})
    assert names(site.evaluate()) == ["t"]


@pytest.mark.parametrize("name", QUEUE_PROPERTIES)
def test_a_tables_queue_of_the_cluster_comes_with_what_is_due_or_asked_for(site: Site, name: str) -> None:
    for number, table in enumerate((inserts(site, name="t"), inserts(site, name="u"))):
        site.set_properties(table, {name: f"queue {number}"})
    inserts(site, name="v")
    request = site.client.compact(table.entity(), CompactionType.MAJOR)
    assert {item.entity.table: (item.job_queue, item.request_id) for item in site.evaluate().due} == {
        "t": ("queue 0", None),
        "u": ("queue 1", request.id),
        "v": (None, None),
    }
    site.withdraw_requests()


def test_a_partition_that_cannot_be_evaluated_does_not_stop_the_others(site: Site) -> None:
    table = site.table(partitions=["p=a", "p=b", "p=c"])
    for partition in ("p=a", "p=b", "p=c"):
        for value in (1, 2):
            table.insert(value, partition=partition)
    (table.folder("p=a") / "delta_odd").mkdir()
    (table.folder("p=c") / "delta_0000005_0000005_0000" / "readme.txt").write_text("?")
    found = site.evaluate()
    assert names(found) == ["t/p=b"]
    assert ["delta_odd" in text for text in found.skipped] == [True, False]
    assert "readme.txt of table" in found.skipped[1]


def test_a_folder_that_is_missing_does_not_stop_the_others(site: Site) -> None:
    inserts(site, "good")
    lost = inserts(site, "lost")
    lost.location.rename(lost.location.with_name("moved"))
    found = site.evaluate()
    assert names(found) == ["good"]
    assert f"{lost.location}: cannot be listed" in found.skipped[0]


def test_a_threshold_that_is_no_number_stops_its_own_table_only(site: Site) -> None:
    inserts(site, "good")
    inserts(site, "odd", properties={COUNT: "ten"})
    found = site.evaluate()
    assert names(found) == ["good"]
    assert f"table property {COUNT}='ten': is not a whole number. Remedy: " in found.skipped[0]
    with pytest.raises(ConfigurationError, match="is not a whole number"):
        site.evaluate(f"{site.database}.odd")


def test_a_table_named_without_wildcards_must_exist_and_must_be_one_that_can_be_compacted(site: Site) -> None:
    inserts(site, "t")
    inserts(site, "sorted_away", properties={"hive.repl.first.inc.pending": "true"})
    with pytest.raises(ObjectNotFoundError, match=rf"table {site.database}.nowhere: does not exist"):
        site.evaluate(f"{site.database}.t", f"{site.database}.nowhere")
    with pytest.raises(UnsupportedTableError, match="first incremental replication"):
        site.evaluate(f"{site.database}.sorted_away")
    assert names(site.evaluate(exclude=[f"{site.database}.t"])) == []


def test_directories_of_nothing_but_aborted_writes_are_due_when_they_are_too_many_or_too_old(site: Site) -> None:
    hives_defaults(site)
    table = site.table()
    for _ in range(3):
        table.write().insert(1).abort()
    # The metastore's high-water mark stays at the first of aborted write ids that nothing follows.
    table.insert(7)
    assert site.evaluate().due == ()
    site.settings = replace(site.settings, thresholds=Thresholds(aborted_txn_threshold=2))
    [due] = site.evaluate().due
    assert due.reason == "major: 3 aborted transactions > 2"
    site.settings = replace(site.settings, thresholds=Thresholds(aborted_txn_time_threshold=0))
    [too_old] = site.evaluate().due
    assert "minor: oldest aborted transaction is " in too_old.reason
    outcome = site.compact(due)
    assert outcome.state is OutcomeState.NOTHING_TO_MERGE
    [cleaned] = site.clean(table.entity())
    assert (cleaned.state, len(cleaned.deleted)) == (CleaningState.CLEANED, 3)
    assert table.directories() == ["delta_0000004_0000004_0000"]
    assert table.values() == [7]


def test_an_obsolete_base_that_nobody_cleaned_is_due(site: Site) -> None:
    hives_defaults(site)
    table = inserts(site)
    for value in (10, 20):
        assert site.compact(table.entity()).state is OutcomeState.COMPACTED
        if value == 10:
            site.clean(table.entity())
            table.insert(value)
    old, new = [name for name in table.directories() if name.startswith("base_")]
    [row] = [row for row in site.rows(table.entity()) if row.state.value == "ready for cleaning"]
    site.queue.cleaned(row, 4)
    [due] = site.evaluate().due
    assert due.reason == "major: an obsolete base waits to be cleaned"
    assert site.compact(due).state is OutcomeState.NOTHING_TO_MERGE
    site.clean(table.entity())
    assert table.directories() == [new]


def test_a_single_delta_is_not_due_because_nothing_could_be_merged(site: Site) -> None:
    inserts(site, count=1)
    site.settings = replace(site.settings, thresholds=Thresholds(delta_num_threshold=0))
    found = site.evaluate()
    assert found.due == ()
    assert "a major compaction has nothing to merge" in found.skipped[0]


def test_an_empty_table_and_a_partition_without_files_are_not_due(site: Site) -> None:
    site.settings = replace(site.settings, thresholds=Thresholds(delta_num_threshold=0))
    site.table("empty")
    site.table("parts", partitions=["p=a"])
    found = site.evaluate()
    assert found.due == ()
    assert {item.entity for item in found.evaluated} == {
        Entity(site.database, "empty"),
        Entity(site.database, "parts", "p=a"),
    }
    assert {item.decision.type for item in found.evaluated} <= {None, CompactionType.MAJOR}
