from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_acid.acid.names import (
    ACID_VERSION_CONTENT,
    COMPACTED,
    METADATA_CONTENT,
    MINIMUM_WRITE_ID,
    BaseName,
    BucketProperty,
    DataFileName,
    DeltaName,
    OriginalFileName,
    bucket_file_name,
    is_flush_length,
    is_hidden,
    parse_data_file_name,
    parse_data_format,
    parse_directory_name,
    parse_flush_length,
    parse_original_file_name,
)
from airflow_provider_acid.exceptions import UnknownNameError

ids = st.integers(0, 2**63 - 1)
base_names = st.builds(BaseName, ids | st.just(MINIMUM_WRITE_ID), ids)
delta_names = st.tuples(ids, ids).flatmap(
    lambda span: st.builds(
        DeltaName,
        st.just(min(span)),
        st.just(max(span)),
        st.just(-1) | st.integers(0, 10_000),
        ids,
        st.booleans(),
    )
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (BaseName(5), "base_0000005"),
        (BaseName(12345678), "base_12345678"),
        (BaseName(24, 26), "base_0000024_v0000026"),
        (BaseName(MINIMUM_WRITE_ID), "base_-9223372036854775808"),
        (BaseName(MINIMUM_WRITE_ID, 9), "base_-9223372036854775808_v0000009"),
        (DeltaName(21, 22), "delta_0000021_0000022"),
        (DeltaName(1, 1, 0), "delta_0000001_0000001_0000"),
        (DeltaName(1, 1, 10_000), "delta_0000001_0000001_10000"),
        (DeltaName(21, 24, visibility_txn_id=26), "delta_0000021_0000024_v0000026"),
        (DeltaName(3, 3, 2, is_delete=True), "delete_delta_0000003_0000003_0002"),
        (DeltaName(1, 5, is_delete=True, visibility_txn_id=12345678), "delete_delta_0000001_0000005_v12345678"),
        (DeltaName(10000001, 10000001, 0), "delta_10000001_10000001_0000"),
    ],
)
def test_a_directory_is_named_as_hive_names_it(value: BaseName | DeltaName, text: str) -> None:
    assert str(value) == text
    assert parse_directory_name(text) == value


@given(base_names | delta_names)
def test_every_directory_name_is_understood_again(value: BaseName | DeltaName) -> None:
    assert parse_directory_name(str(value)) == value


@pytest.mark.parametrize("name", ["base_0000005_v0000000", "base_5"])
def test_padding_and_an_empty_visibility_make_no_other_base(name: str) -> None:
    assert parse_directory_name(name) == BaseName(5)


@pytest.mark.parametrize(
    "name", ["000000_0", "ds=1", "_tmp", ".base_1", "HIVE_UNION_SUBDIR_1", "base", "mydelta_1_1", ""]
)
def test_other_names_are_no_acid_directories(name: str) -> None:
    assert parse_directory_name(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "base_",
        "base_x",
        "base_-5",
        "base_5_6",
        "base_5_v",
        "base_5_v6_7",
        "base_9223372036854775808",
        "base_٥",
        "base_5\n",
        "delta_1",
        "delta_1_",
        "delta_2_1",
        "delta_-1_1",
        "delta_1_1_1_1",
        "delta_1_1_v2_0000",
        "delta_1_9223372036854775808",
        "delete_delta_1",
        "delete_delta_1_x",
        "delta_1_1 ",
    ],
)
def test_a_name_that_only_begins_like_an_acid_directory_is_refused(name: str) -> None:
    with pytest.raises(UnknownNameError, match="begins like an ACID directory"):
        parse_directory_name(name)


@pytest.mark.parametrize("digits", [101, 5000])
def test_numbers_of_thousands_of_digits_are_no_numbers_of_a_name(digits: int) -> None:
    number = "1" * digits
    names = (
        f"base_{number}",
        f"delta_1_{number}",
        f"delta_1_2_{number}",
        f"base_1_v{number}",
        f"delete_delta_{number}_2",
    )
    for name in names:
        with pytest.raises(UnknownNameError, match="follows none of the name rules"):
            parse_directory_name(name.replace("N", number))
    assert parse_data_file_name(f"bucket_{number}") is None
    assert parse_data_file_name(f"bucket_1_{number}") is None
    assert parse_original_file_name(f"{number}_0") is None
    assert parse_original_file_name(f"0_0_copy_{number}") is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bucket_00000", DataFileName(0, None)),
        ("bucket_00001_0", DataFileName(1, 0)),
        ("bucket_04095_12", DataFileName(4095, 12)),
        ("bucket_100000", DataFileName(100000, None)),
        ("bucket_00000_flush_length", None),
        ("bucket_", None),
        ("bucket_00000_0_1", None),
        ("bucket_00000.orc", None),
        ("xbucket_00000", None),
        ("000000_0", None),
    ],
)
def test_data_files(name: str, value: DataFileName | None) -> None:
    assert parse_data_file_name(name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("000000_0", OriginalFileName(0, 0)),
        ("000001_0_copy_10", OriginalFileName(1, 10)),
        ("000012_1000", OriginalFileName(12, 0)),
        ("000000_0_copy_", None),
        ("000000", None),
        ("bucket_00000", None),
        ("part-00000", None),
    ],
)
def test_original_files(name: str, value: OriginalFileName | None) -> None:
    assert parse_original_file_name(name) == value


@given(st.integers(0, 4095))
def test_an_output_file_is_a_data_file_of_its_bucket_without_an_attempt(bucket: int) -> None:
    assert parse_data_file_name(bucket_file_name(bucket)) == DataFileName(bucket, None)
    assert len(bucket_file_name(bucket)) == len("bucket_00000")


def test_of_the_lengths_that_a_streaming_writer_committed_the_last_one_counts() -> None:
    lengths = b"".join(length.to_bytes(8, "big") for length in (3, 900, 1200))
    assert parse_flush_length(lengths, "bucket_00000_flush_length") == 1200


def test_side_files_and_hidden_files_are_told_by_name() -> None:
    assert is_flush_length("bucket_00000_flush_length")
    assert not is_flush_length("bucket_00000_flush_length2")
    assert is_hidden("_orc_acid_version")
    assert is_hidden(".bucket_00000.crc")
    assert not is_hidden("bucket_00000")


@pytest.mark.parametrize(
    ("value", "decoded"),
    [
        (536870912, BucketProperty(1, 0, 0)),
        (536936448, BucketProperty(1, 1, 0)),
        (536870913, BucketProperty(1, 0, 1)),
        (536936450, BucketProperty(1, 1, 2)),
        (805240832, BucketProperty(1, 4095, 0)),
        (0, BucketProperty(0, 0, 0)),
        (7, BucketProperty(0, 7, 0)),
    ],
)
def test_bucket_properties_as_hive_writes_them(value: int, decoded: BucketProperty) -> None:
    assert BucketProperty.decode(value) == decoded
    assert decoded.encode() == value


@given(
    st.builds(BucketProperty, st.just(1), st.integers(0, 4095), st.integers(0, 4095))
    | st.builds(BucketProperty, st.just(0), st.integers(0, 2**29 - 1), st.just(0))
)
def test_every_bucket_property_is_understood_again(value: BucketProperty) -> None:
    assert BucketProperty.decode(value.encode()) == value


@given(st.integers(-(2**31), 2**31 - 1))
def test_a_bucket_property_is_decoded_exactly_or_refused(value: int) -> None:
    try:
        decoded = BucketProperty.decode(value)
    except UnknownNameError:
        assert value < 0 or value >> 29 > 1 or value & 0x1000F000
    else:
        assert decoded.encode() == value


@pytest.mark.parametrize(
    "value",
    [
        BucketProperty(1, 4096, 0),
        BucketProperty(1, 0, 4096),
        BucketProperty(1, -1, 0),
        BucketProperty(0, 1, 1),
        BucketProperty(0, 2**29, 0),
        BucketProperty(2, 0, 0),
    ],
)
def test_what_has_no_bucket_property_is_refused(value: BucketProperty) -> None:
    with pytest.raises(UnknownNameError):
        value.encode()


def test_marker_files_hold_what_hive_writes() -> None:
    assert ACID_VERSION_CONTENT == b"2"
    assert json.loads(METADATA_CONTENT) == {"thisFileVersion": "0", "dataFormat": "compacted"}
    assert len(METADATA_CONTENT) == 48
    assert parse_data_format(METADATA_CONTENT, "base_0000001/_metadata_acid") == COMPACTED


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"compacted",
        b"[]",
        b"{}",
        b'{"thisFileVersion":"1","dataFormat":"compacted"}',
        b'{"thisFileVersion":"0","dataFormat":"other"}',
        b'{"thisFileVersion":"0","dataFormat":1}',
        b"\xff",
    ],
)
def test_a_marker_file_that_hive_does_not_write_is_refused(content: bytes) -> None:
    with pytest.raises(UnknownNameError, match="base_0000001/_metadata_acid"):
        parse_data_format(content, "base_0000001/_metadata_acid")
