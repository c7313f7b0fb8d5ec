from __future__ import annotations

from airflow_provider_acid.acid.listing import FileEntry, Listing

LISTING = Listing(
    (
        FileEntry("000000_0", 1),
        FileEntry("a/b/file", 2),
        FileEntry("a/bc/file", 3),
        FileEntry("base_5/bucket_00000", 4),
    ),
    ("a", "a/b", "a/bc", "base_5", "base_5x"),
)


def test_without_files_and_directories_all_below_them_is_gone_and_nothing_else() -> None:
    left = LISTING.without(["000000_0", "a/b", "base_5", "elsewhere"])
    assert [file.path for file in left.files] == ["a/bc/file"]
    assert left.directories == ("a", "a/bc", "base_5x")


def test_without_nothing_it_is_the_same() -> None:
    assert LISTING.without(()) == LISTING
