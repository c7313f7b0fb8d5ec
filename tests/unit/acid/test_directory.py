from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_acid import exceptions
from airflow_provider_acid.acid.directory import AcidDirectory, acid_directory, base_format_files
from airflow_provider_acid.acid.listing import Listing
from tests.unit.acid.case_files import (
    Case,
    case_directory,
    case_listing,
    case_txns,
    case_write_ids,
    cases,
    listing_of,
)

CASES = cases("directory")
JUDGED = [name for name, case in CASES.items() if "error" not in case["expect"]]


def described(directory: AcidDirectory) -> dict[str, object]:
    """What a case may expect, by the names of the fields; what is empty is left out."""
    fields: dict[str, object] = {
        "base": directory.base.path if directory.base else None,
        "deltas": [delta.path for delta in directory.deltas],
        "originals": [file.path for file in directory.originals],
        "obsolete": list(directory.obsolete),
        "aborted": list(directory.aborted),
        "aborted_write_ids": sorted(directory.aborted_write_ids),
        "uncompacted_aborts": bool(directory.partly_aborted),
        "invisible": list(directory.invisible),
    }
    return {name: value for name, value in fields.items() if value}


@pytest.mark.parametrize("name", JUDGED)
def test_a_snapshot_holds_exactly_what_hive_reads(name: str) -> None:
    case = CASES[name]
    assert described(case_directory(case, case["view"])) == case["expect"]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "error" in case["expect"]])
def test_a_directory_that_cannot_be_judged_is_refused_by_name(name: str) -> None:
    case = CASES[name]
    with pytest.raises(getattr(exceptions, case["expect"]["error"])) as refused:
        case_directory(case, case["view"])
    for text in case["expect"]["mentions"]:
        assert text in str(refused.value)


@pytest.mark.parametrize("name", JUDGED)
def test_the_order_of_the_listing_does_not_matter(name: str) -> None:
    case: Case = CASES[name]
    listing = case_listing(case)
    backwards = Listing(listing.files[::-1], listing.directories[::-1])
    arguments = case_write_ids(case, case["view"]), case_txns(case), case.get("base_formats", {})
    assert acid_directory(backwards, *arguments) == acid_directory(listing, *arguments)


@pytest.mark.parametrize("name", [name for name in JUDGED if "directories" not in CASES[name]])
def test_a_store_without_directories_gives_the_same_snapshot(name: str) -> None:
    case = CASES[name]
    listing = replace(case_listing(case), directories=())
    found = acid_directory(listing, case_write_ids(case, case["view"]), case_txns(case), case.get("base_formats", {}))
    assert found == case_directory(case, case["view"])


def test_the_marker_files_to_read_are_those_right_in_a_base_whose_name_does_not_tell_who_made_it() -> None:
    listing = listing_of(
        {
            "base_0000005/_metadata_acid": 48,
            "base_0000005/deeper/_metadata_acid": 48,
            "delta_0000006_0000006/_metadata_acid": 48,
            "_staging/base_0000007/_metadata_acid": 48,
            "base_0000008_v0000009/_metadata_acid": 48,
            "base_0000010_v0000000/_metadata_acid": 48,
        }
    )
    assert base_format_files(listing) == ("base_0000005/_metadata_acid", "base_0000010_v0000000/_metadata_acid")


def test_files_are_told_apart_by_name() -> None:
    case = {
        "files": {
            "base_0000001/bucket_00000": 10,
            "base_0000001/000000_0": 20,
            "base_0000001/_orc_acid_version": 1,
            "delta_0000002_0000004/bucket_00000": 30,
            "delta_0000002_0000004/bucket_00000_flush_length": 8,
            "delta_0000002_0000004/.bucket_00000.crc": 99,
            "delta_0000005_0000005/part-0.orc": 40,
            "delta_0000005_0000005/deeper/bucket_00001_0": 50,
            "delta_0000009_0000009/part-1.orc": 60,
        },
        "write_ids": {"high_water_mark": 5},
        "txns": {"high_water_mark": 9},
    }
    directory = case_directory(case, "compactor")
    assert directory.raw_files == ("base_0000001/000000_0",)
    assert directory.flush_length_files == ("delta_0000002_0000004/bucket_00000_flush_length",)
    assert directory.unknown_files == ("delta_0000005_0000005/part-0.orc",)
    assert directory.nested_directories == ("delta_0000005_0000005/deeper",)
    assert [delta.size_bytes for delta in directory.deltas] == [38, 40]
    assert (directory.base_bytes, directory.delta_bytes) == (30, 78)
    assert [part.path for part in directory.directories] == [
        "base_0000001",
        "delta_0000002_0000004",
        "delta_0000005_0000005",
        "delta_0000009_0000009",
    ]
