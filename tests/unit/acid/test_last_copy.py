"""Which names beside a compaction's result may hold its rows, so that it may be taken away."""

from __future__ import annotations

import pytest

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.plan.last_copy import is_held_elsewhere

BASE, ROWS, DELETES = "base_0000005_v0000009", "delta_0000003_0000005_v0000009", "delete_delta_0000003_0000005_v0000009"
UNCOMMITTED = (8, 9)


@pytest.mark.parametrize(
    ("other", "of_base", "of_deltas"),
    [
        ("base_0000002", True, False),
        ("base_0000003_v0000010", True, True),
        ("base_0000005_v0000010", True, True),
        ("base_0000007", True, True),
        ("base_0000005_v0000008", False, False),
        ("base_-9223372036854775808", True, False),
        ("delta_0000001_0000002_0000", True, False),
        ("delta_0000004_0000004_0000", True, True),
        ("delta_0000001_0000009_v0000010", True, True),
        ("delta_0000004_0000005_v0000008", False, False),
        ("delta_0000006_0000006_0000", False, False),
        ("delete_delta_0000004_0000004_0000", False, True),
        ("delete_delta_0000006_0000006_0000", False, False),
        ("000000_0", True, False),
        ("HIVE_UNION_SUBDIR_1", True, False),
        ("_acid_compaction_0123456789abcdef", False, False),
        (".hive-staging_1", False, False),
        ("_SUCCESS", False, False),
    ],
)
def test_sources_and_what_replaced_them_hold_the_rows(other: str, of_base: bool, of_deltas: bool) -> None:
    for published, is_held in (((BASE,), of_base), ((ROWS,), of_deltas), ((DELETES,), of_deltas)):
        assert is_held_elsewhere(beside(other, published), published, UNCOMMITTED) is is_held, published
    pair = (DELETES, ROWS)
    assert is_held_elsewhere(beside(other, pair), pair, UNCOMMITTED) is of_deltas


def beside(other: str, published: tuple[str, ...]) -> Listing:
    """What a look at names shows, of a file, or of a directory with what lies deeper."""
    if other in ("000000_0", "_SUCCESS"):
        return Listing((FileEntry(other, 1),), published)
    return Listing((FileEntry(f"{other}/000000_0", 1),), tuple(sorted((*published, other, f"{other}/deep"))))
