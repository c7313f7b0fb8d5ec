from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from airflow_provider_acid.acid.directory import AcidDirectory, acid_directory
from airflow_provider_acid.acid.hive import HIVE_3, HIVE_4, Hive
from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.acid.write_ids import TableWriteIds, ValidWriteIdList, compactor_list
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.thresholds import (
    AbortedFigures,
    TableKind,
    Thresholds,
    auto_compaction,
    decide,
    demanded,
)
from tests.unit.acid.case_files import case_directory, cases

CASES = cases("decision")


@pytest.mark.parametrize("name", CASES)
def test_a_partition_is_due_when_hives_initiator_says_so(name: str) -> None:
    case = CASES[name]
    hive = {3: HIVE_3, 4: HIVE_4}[case["hive_version"]]
    directory = case_directory({**case, "txns": {"high_water_mark": 9} if hive == HIVE_4 else None}, "compactor")
    thresholds = Thresholds(**case.get("thresholds", {})).for_table(case.get("table_parameters", {}))
    decision = decide(
        directory,
        thresholds,
        hive,
        kind=TableKind(case.get("kind", "full ACID")),
        aborted=AbortedFigures(**case.get("aborted", {})),
    )
    found = asdict(decision)
    assert {name: found[name] for name in case["expect"]} == case["expect"]
    assert decision.reason.startswith(f"{case['expect']['type'] or 'not due'}: ")


def test_the_defaults_are_hives() -> None:
    assert Thresholds() == Thresholds(10, 0.1, 1000, 43_200)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("compactorthreshold.hive.compactor.delta.num.threshold", "many"),
        ("compactorthreshold.hive.compactor.delta.num.threshold", "1.5"),
        ("compactorthreshold.hive.compactor.delta.pct.threshold", "10%"),
        ("compactorthreshold.hive.compactor.delta.pct.threshold", "nan"),
    ],
)
def test_a_threshold_that_is_no_number_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Thresholds().for_table({name: value})


@pytest.mark.parametrize(
    ("parameters", "kind"),
    [
        ({}, None),
        ({"transactional": "false"}, None),
        ({"transactional": "true"}, TableKind.FULL_ACID),
        ({"TRANSACTIONAL": "TRUE"}, TableKind.FULL_ACID),
        ({"transactional": "true", "transactional_properties": "default"}, TableKind.FULL_ACID),
        ({"transactional": "true", "transactional_properties": "insert_only"}, TableKind.INSERT_ONLY),
        ({"transactional_properties": "insert_only"}, None),
    ],
)
def test_the_kind_of_a_table_is_in_its_parameters(parameters: dict[str, str], kind: TableKind | None) -> None:
    assert TableKind.of(parameters) is kind


NO = {"no_auto_compaction": "true"}


@pytest.mark.parametrize(
    ("scenario", "table", "database", "listed", "override", "hive", "allowed", "reason"),
    [
        ("nothing set", {}, {}, False, False, HIVE_4, True, "not in force"),
        ("I-07 table", NO, {}, False, False, HIVE_4, False, "table property no_auto_compaction=true"),
        ("I-07 upper case", {"NO_AUTO_COMPACTION": "TRUE"}, {}, False, False, HIVE_3, False, "table property"),
        ("I-07 value false", {"no_auto_compaction": "false"}, {}, False, False, HIVE_4, True, "not in force"),
        ("I-08 both", NO, NO, False, False, HIVE_4, False, "database property no_auto_compaction=true"),
        ("I-08 database alone", {}, NO, False, False, HIVE_4, False, "database property"),
        ("I-08 database on Hive 3", {}, NO, False, False, HIVE_3, True, "not in force"),
        ("I-09 database wins", NO, {"NO_AUTO_COMPACTION": "false"}, False, False, HIVE_4, True, "not in force"),
        ("I-09 not on Hive 3", NO, {"NO_AUTO_COMPACTION": "false"}, False, False, HIVE_3, False, "table property"),
        ("enrolled", NO | {"airflow_acid.auto_compaction": "true"}, {}, False, False, HIVE_4, True, "enrols it"),
        ("enrolled beats database", {"airflow_acid.auto_compaction": "True"}, NO, False, False, HIVE_4, True, "enrols"),
        (
            "not enrolled",
            NO | {"airflow_acid.auto_compaction": "no"},
            {},
            False,
            False,
            HIVE_4,
            False,
            "table property",
        ),
        ("listed", NO, {}, True, False, HIVE_4, False, "table property"),
        ("override alone", NO, {}, False, True, HIVE_4, False, "table property"),
        ("listed with override", NO, {}, True, True, HIVE_4, True, "include list with override_no_auto_compaction"),
    ],
)
def test_no_auto_compaction_is_honoured_unless_the_table_is_enrolled(
    scenario: str,
    table: dict[str, str],
    database: dict[str, str],
    listed: bool,
    override: bool,
    hive: Hive,
    allowed: bool,
    reason: str,
) -> None:
    found = auto_compaction(table, database, listed_explicitly=listed, override=override, hive=hive)
    assert (found.allowed, reason in found.reason) == (allowed, True), (scenario, found)


def test_small_and_obsolete_deltas_are_counted_as_hives_metrics_do() -> None:
    files = {
        "base_0000005/bucket_00000": 10_000,
        "delta_0000003_0000003/bucket_00000": 1,
        "delete_delta_0000004_0000004/bucket_00000": 1,
        "delete_delta_0000005_0000005/bucket_00000": 1,
        "base_0000002/bucket_00000": 1,
        "delta_0000006_0000006/bucket_00000": 99,
        "delete_delta_0000007_0000007/bucket_00000": 99,
        "delta_0000008_0000008/bucket_00000": 100,
    }
    decision = decide(directory_of(files), Thresholds(), HIVE_4)
    assert (decision.small_deltas, decision.obsolete_deltas, decision.obsolete_directories) == (2, 3, 4)


def test_without_a_base_no_delta_is_small() -> None:
    assert decide(directory_of({"delta_0000001_0000001/bucket_00000": 0}), Thresholds(), HIVE_4).small_deltas == 0


def directory_of(sizes: dict[str, int]) -> AcidDirectory:
    listing = Listing(
        tuple(FileEntry(path, size) for path, size in sizes.items()), tuple(path.rpartition("/")[0] for path in sizes)
    )
    return acid_directory(listing, ValidWriteIdList("d.t", 9), None)


@pytest.mark.parametrize(
    ("delta_bytes", "ratio", "shown"),
    [
        (30, 0.1, "ratio 0.03 ≤ 0.10"),
        (200, 0.1, "ratio 0.20 > 0.10"),
        (104, 0.1, "ratio 0.104 > 0.100"),
        (96, 0.1, "ratio 0.096 ≤ 0.100"),
        (125, 0.125, "ratio 0.12 ≤ 0.12"),
    ],
)
def test_a_reason_shows_as_many_digits_as_it_takes_to_see_the_difference(
    delta_bytes: int, ratio: float, shown: str
) -> None:
    write_ids = compactor_list(TableWriteIds("d.t", 9, frozenset(), frozenset()))
    files = (
        FileEntry("base_0000001/bucket_00000", 1000),
        FileEntry("delta_0000002_0000002_0000/bucket_00000", delta_bytes),
    )
    directory = acid_directory(Listing(files, ("base_0000001", "delta_0000002_0000002_0000")), write_ids, None)
    assert shown in decide(directory, Thresholds(delta_pct_threshold=ratio), HIVE_4).reason


def test_a_ratio_that_is_too_large_for_java_is_never_exceeded() -> None:
    thresholds = Thresholds().for_table({"compactorthreshold.hive.compactor.delta.pct.threshold": "1e39"})
    decision = decide(
        directory_of({"base_0000001/bucket_00000": 1, "delta_0000002_0000002/bucket_00000": 9**9}), thresholds, HIVE_4
    )
    assert (decision.type, decision.reason.rpartition(" ")[2]) == (None, "inf")


@pytest.mark.parametrize("type", CompactionType)
def test_what_is_asked_for_is_done_whatever_the_thresholds_say_and_they_are_still_told(type: CompactionType) -> None:
    decision = decide(AcidDirectory(), Thresholds(), HIVE_4)
    found = demanded(decision, type)
    assert (found.type, found.reason) == (type, f"{type.value}: asked for (not due: 0 deltas ≤ 10; no data)")
    assert replace(found, type=None, reason=decision.reason) == decision
