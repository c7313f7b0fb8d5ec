from __future__ import annotations

import pytest

from airflow_provider_acid import exceptions
from airflow_provider_acid.acid.directory import acid_directory
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.plan.obsolete import deletable, deletable_of_replaced, highest_safe_write_id, leftovers
from tests.unit.acid.case_files import Case, case_listing, case_txns, case_write_ids, cases, listing_of

CASES = cases("cleaning")
CLEANED = [name for name, case in CASES.items() if "error" not in case]


def without(listing: Listing, deleted: tuple[str, ...]) -> Listing:
    def stays(path: str) -> bool:
        return not any(path == gone or path.startswith(gone + "/") for gone in deleted)

    return Listing(
        tuple(file for file in listing.files if stays(file.path)),
        tuple(name for name in listing.directories if stays(name)),
    )


def deleted_by(case: Case, listing: Listing) -> tuple[str, ...]:
    return deletable(listing, case_write_ids(case, "cleaner"), case_txns(case), case.get("base_formats", {}))


@pytest.mark.parametrize("name", CLEANED)
def test_exactly_the_obsolete_and_aborted_is_deleted(name: str) -> None:
    case = CASES[name]
    assert sorted(deleted_by(case, case_listing(case))) == case["deleted"]


@pytest.mark.parametrize("name", CLEANED)
def test_rows_go_before_their_deletes(name: str) -> None:
    """A base without rows is none for Trino, which goes on with what it replaced until the last of that is gone."""
    case = CASES[name]
    order = [path.startswith("delete_delta_") for path in deleted_by(case, case_listing(case))]
    assert order == sorted(order)


@pytest.mark.parametrize("name", CLEANED)
def test_a_second_clean_finds_nothing(name: str) -> None:
    case = CASES[name]
    listing = case_listing(case)
    assert deleted_by(case, without(listing, deleted_by(case, listing))) == ()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "error" in case])
def test_nothing_is_deleted_where_that_would_make_damage_final(name: str) -> None:
    case = CASES[name]
    with pytest.raises(getattr(exceptions, case["error"])) as refused:
        deleted_by(case, case_listing(case))
    for text in case["mentions"]:
        assert text in str(refused.value)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "safe" in case])
def test_the_reported_write_id_stays_below_every_aborted_one_that_may_still_have_rows(name: str) -> None:
    case = CASES[name]
    listing = case_listing(case)
    after = acid_directory(
        without(listing, deleted_by(case, listing)),
        case_write_ids(case, "cleaner"),
        case_txns(case),
        case.get("base_formats", {}),
    )
    aborted = case["write_ids"].get("aborted", [])
    assert highest_safe_write_id(after, aborted, case["highest"]) == case["safe"]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "leftovers" in case])
def test_what_a_reader_holds_back_is_left_over(name: str) -> None:
    case = CASES[name]
    assert leftovers(case_listing(case), "testing.t", case["highest"]) == tuple(case["leftovers"])


def test_after_a_complete_clean_nothing_is_left_over() -> None:
    case = CASES["C-01-major"]
    listing = case_listing(case)
    assert leftovers(without(listing, deleted_by(case, listing)), "testing.t", case["highest"]) == ()


def test_deletion_is_decided_by_a_cleaners_list_only() -> None:
    case = CASES["C-01-major"]
    with pytest.raises(ConfigurationError, match="reader"):
        deletable(case_listing(case), case_write_ids(case, "reader"), case_txns(case))


def test_an_aborted_overwrite_that_remains_holds_its_own_write_id() -> None:
    case: Case = {"write_ids": {"high_water_mark": 9, "aborted": [3, 7]}, "highest": 9}
    listing = listing_of({"base_0000007/bucket_00000": 1, "base_0000009_v0000020/bucket_00000": 1})
    directory = acid_directory(listing, case_write_ids(case, "cleaner"), case_txns({"txns": {"high_water_mark": 30}}))
    assert highest_safe_write_id(directory, [3, 7], 9) == 6


def test_on_hive_3_a_later_compactions_result_does_not_count_in_an_earlier_ones_cleaning() -> None:
    """Seed 1035 of the histories: delta_4_5 came after the reader that still reads delta_4 and delta_5."""
    replaced = {"delta_0000001_0000001", "delta_0000002_0000002", "000000_0"}
    later = ("delta_0000004_0000004", "delta_0000005_0000005", "delta_0000004_0000005")
    files = [f"{name}/bucket_00000" for name in ("base_0000003", *sorted(replaced - {"000000_0"}), *later)]
    listing = listing_of(dict.fromkeys([*files, "000000_0", "base_0000003/_metadata_acid"], 1))
    write_ids = case_write_ids({"write_ids": {"high_water_mark": 9}, "highest": 6}, "cleaner")
    formats = {"base_0000003": "compacted"}
    everything = deletable(listing, write_ids, None, formats)
    assert set(everything) == {*replaced, *later[:2]}
    assert deletable_of_replaced(listing, write_ids, replaced, formats) == tuple(sorted(replaced))
    assert deletable_of_replaced(listing, write_ids, (), formats) == ()


def test_what_was_replaced_but_is_current_again_is_not_deletable() -> None:
    listing = listing_of({"delta_0000001_0000001/bucket_00000": 1})
    write_ids = case_write_ids({"write_ids": {"high_water_mark": 9}, "highest": 6}, "cleaner")
    assert deletable_of_replaced(listing, write_ids, {"delta_0000001_0000001"}) == ()
