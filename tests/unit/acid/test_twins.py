"""Which deltas of a partition are results of one range of write ids."""

from __future__ import annotations

import pytest

from airflow_provider_acid.acid.layout import partition_layout
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.plan.twins import find_twins, may_hold_twins, pair_of_compactions

MANY_DIGITS, FEWER_DIGITS = "delta_0000001_0000005_v10000000", "delta_0000001_0000005_v9999999"
OLDER, NEWER = "delta_0000001_0000005_v0000010", "delta_0000001_0000005_v0000012"


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        ([OLDER, NEWER], [(OLDER, NEWER)]),
        ([MANY_DIGITS, FEWER_DIGITS], [(FEWER_DIGITS, MANY_DIGITS)]),
        ([f"delete_{OLDER}", NEWER], []),
        ([f"delete_{OLDER}", f"delete_{NEWER}", NEWER], [(f"delete_{OLDER}", f"{NEWER} with delete_{NEWER}")]),
        (
            [OLDER, f"delete_{OLDER}", f"delete_{NEWER}", NEWER],
            [(f"{OLDER} with delete_{OLDER}", f"{NEWER} with delete_{NEWER}")],
        ),
        ([OLDER, "delta_0000001_0000006_v0000012"], []),
        ([OLDER, "delta_0000002_0000005_v0000012"], []),
        (["delta_0000005_0000005_0000", "delta_0000005_0000005_0001"], []),
        (["base_0000005_v0000010", "base_0000005_v0000012"], []),
        ([f"_acid_compaction_0123456789abcdef/{OLDER}", NEWER], []),
    ],
)
def test_twins_differ_in_nothing_but_their_transactions(names: list[str], groups: list[tuple[str, ...]]) -> None:
    listing = Listing((), tuple(sorted(names)))
    formats = {name: "compacted" for name in names if name.startswith("base_")}
    found = find_twins(partition_layout(listing, formats).deltas)
    assert [tuple(map(str, results)) for results in found] == groups
    assert may_hold_twins(listing) == bool(groups)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([OLDER, NEWER, "delta_0000001_0000005_v0000014"], "are more than two"),
        (["delta_0000001_0000005", NEWER], "are not all results of compactions"),
        ([OLDER, "delta_1_5_v10"], "are not all results of compactions"),
    ],
)
def test_what_is_no_pair_of_compactions_results_is_refused(names: list[str], words: str) -> None:
    (group,) = find_twins(partition_layout(Listing((), tuple(names)), {}).deltas)
    with pytest.raises(UnsupportedTableError, match=words) as refused:
        pair_of_compactions(group)
    assert all(name in str(refused.value) for name in names)
