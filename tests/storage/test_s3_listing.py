"""Which objects belong to a location of S3, and reading them."""

from __future__ import annotations

import pytest

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.storages.s3.options import S3Options
from airflow_provider_acid.storages.s3.storage import S3Storage
from tests.harness.s3_server import S3Server
from tests.storage.s3_site import LARGE, TABLE, Site


@pytest.fixture
def site(s3: S3Server) -> Site:
    return Site(s3)


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_every_scheme_that_hive_writes_names_the_same_objects(site: Site, scheme: str) -> None:
    site.put("delta_1_1/bucket_00000", b"12345")
    storage = S3Storage(f"{scheme}://{site.bucket}/{TABLE}/", site.options, site.credentials)
    assert storage.list() == Listing((FileEntry("delta_1_1/bucket_00000", 5),), ("delta_1_1",))


@pytest.mark.parametrize("location", ["s3a:///x", "s3a://B/x", "s3a://bucket/a/../b", "s3a://bucket/a//b", "s3a://"])
def test_a_location_without_a_bucket_or_that_goes_up_is_refused(location: str) -> None:
    with pytest.raises(StorageError, match="check the location in the metastore"):
        S3Storage(location, S3Options())


def test_a_location_with_credentials_is_refused_and_not_repeated() -> None:
    with pytest.raises(StorageError, match=r"s3a://…@bucket/x: holds credentials") as caught:
        S3Storage("s3a://KEY:SECRET@bucket/x", S3Options())
    assert "SECRET" not in str(caught.value)


def test_names_of_partitions_are_taken_as_they_are(site: Site) -> None:
    for name in ("p=a%3Ab", "p=a%2Fb", "p=ä ö+&", "p=__HIVE_DEFAULT_PARTITION__"):
        site.put(f"{name}/base_1/bucket_00000", name.encode())
        storage = S3Storage(f"{site.location}/{name}", site.options, site.credentials)
        assert storage.list().directories == ("base_1",)
        assert storage.read("base_1/bucket_00000") == name.encode()


def test_a_neighbour_whose_name_begins_alike_is_not_listed_nor_deleted(site: Site) -> None:
    site.put("delta_1/f")
    site.put("delta_10/f")
    storage = site.storage()
    assert storage.list("delta_1").files == (FileEntry("f", 1),)
    storage.delete(["delta_1"])
    assert site.names() == ["delta_10/f"]


def test_markers_are_no_files_and_make_the_directories_that_hive_sees_through_s3a(site: Site) -> None:
    site.put("", b"")
    site.put("base_0000002/", b"")
    site.put("delta_3_3/", b"")
    site.put("delta_3_3/bucket_00000", b"1")
    site.put("delta_4_4_$folder$", b"")
    assert site.storage().list() == Listing((FileEntry("delta_3_3/bucket_00000", 1),), ("base_0000002", "delta_3_3"))


def test_a_marker_of_an_empty_base_that_hive_sees_on_emr_only_is_refused(site: Site) -> None:
    site.put("base_0000002_$folder$", b"")
    with pytest.raises(StorageError, match=r"base_0000002_\$folder\$: marks an empty base for EMR"):
        site.storage().list()
    site.put("base_0000002/bucket_00000")
    assert site.storage().list().directories == ("base_0000002",)


def test_nothing_at_a_location_is_an_empty_listing_but_a_missing_directory_an_error(site: Site) -> None:
    assert site.storage().list() == Listing()
    with pytest.raises(StorageError, match=f"{TABLE}/delta_1_1: cannot be listed .it does not exist."):
        site.storage().list("delta_1_1")


def test_a_file_is_read_by_ranges(site: Site) -> None:
    site.put("f", LARGE)
    with site.storage().open_input("f") as file:
        assert file.seek(-7, 2) == len(LARGE) - 7
        assert file.read() == LARGE[-7:]
        file.seek(4 << 20)
        assert file.read(100) == LARGE[4 << 20 :][:100]


def test_arrow_makes_up_what_an_object_lacks_that_became_shorter_after_it_was_opened(site: Site) -> None:
    """Why files may never be replaced here: where this no longer holds, S3Store promises ``short_replies``, too."""
    site.put("f", LARGE)
    with site.storage().open_input("f") as file:
        site.put("f", LARGE[:100_001])
        assert len(file.read(len(LARGE))) == len(LARGE)
