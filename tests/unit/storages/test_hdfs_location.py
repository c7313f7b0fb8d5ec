"""Which path on which HDFS a location means."""

from __future__ import annotations

import pytest

from airflow_provider_acid.exceptions import ConfigurationError, StorageError
from airflow_provider_acid.storages.hdfs.location import HdfsLocation
from airflow_provider_acid.storages.hdfs.options import HdfsOptions


@pytest.mark.parametrize(
    ("location", "authority", "path"),
    [
        ("hdfs://nn:8020/wh/t", "nn:8020", "/wh/t"),
        ("hdfs://ns1/wh/t", "ns1", "/wh/t"),
        ("hdfs:///wh/t", "", "/wh/t"),
        ("hdfs:/wh/t", "", "/wh/t"),
        ("HDFS://nn:8020/wh/t/", "nn:8020", "/wh/t"),
        ("webhdfs://nn:9870/wh//t/./p", "nn:9870", "/wh/t/p"),
        ("swebhdfs://[::1]:9871/t", "[::1]:9871", "/t"),
        ("hdfs://nn:8020/wh/ds=a%2Fb c#1?x=2&y=ü\n;", "nn:8020", "/wh/ds=a%2Fb c#1?x=2&y=ü\n;"),
    ],
)
def test_a_location_is_taken_apart_and_its_path_left_as_it_is(location: str, authority: str, path: str) -> None:
    place = HdfsLocation.of(location)
    assert (place.location, place.authority, place.path) == (location, authority, path)


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("s3a://bucket/t", "is not on HDFS"),
        ("/wh/t", "is not on HDFS"),
        ("hdfs", "is not on HDFS"),
        ("hdfs:relative/t", "is not on HDFS"),
        ("hdfs://user:secret@nn:8020/t", "is not on HDFS"),
        ("hdfs://nn:8020", "names no directory"),
        ("hdfs://nn:8020//", "names no directory"),
        ("hdfs://nn:8020/wh/../etc", "holds '..'"),
    ],
)
def test_what_is_no_absolute_path_on_an_hdfs_is_refused(location: str, reason: str) -> None:
    with pytest.raises(StorageError, match=reason) as caught:
        HdfsLocation.of(location)
    assert caught.value.subject == location


def test_what_is_below_is_not_escaped() -> None:
    assert HdfsLocation.of("hdfs://ns1/wh/t").below(("a%2Fb", "c d")) == "/wh/t/a%2Fb/c d"


@pytest.mark.parametrize(
    ("location", "options", "urls"),
    [
        ("webhdfs://nn:9870/t", HdfsOptions(), ("http://nn:9870",)),
        ("swebhdfs://nn:9871/t", HdfsOptions(), ("https://nn:9871",)),
        ("hdfs://nn:8020/t", HdfsOptions(("nn:9870",)), ("http://nn:9870",)),
        ("hdfs://nn:8020/t", HdfsOptions(("nn:9871",), tls=True), ("https://nn:9871",)),
        ("hdfs://b:8020/t", HdfsOptions(("a:9870", "https://b:9871/")), ("http://a:9870", "https://b:9871")),
        ("hdfs://ns1/t", HdfsOptions(("a:9870",), ("ns1",)), ("http://a:9870",)),
        ("hdfs:///t", HdfsOptions(("a:9870",)), ("http://a:9870",)),
    ],
)
def test_web_addresses_come_from_the_options_or_the_location(
    location: str, options: HdfsOptions, urls: tuple[str, ...]
) -> None:
    assert HdfsLocation.of(location).web_addresses(options) == urls


@pytest.mark.parametrize("location", ["hdfs://nn:8020/t", "hdfs://ns1/t", "hdfs:///t", "webhdfs://ns1/t"])
def test_without_a_web_address_the_remedy_is_to_set_it(location: str) -> None:
    with pytest.raises(ConfigurationError, match="set web_addresses"):
        HdfsLocation.of(location).web_addresses(HdfsOptions())


@pytest.mark.parametrize("location", ["hdfs://other:8020/t", "hdfs://ns2/t", "webhdfs://other:9870/t"])
def test_the_same_path_on_another_cluster_is_refused(location: str) -> None:
    with pytest.raises(StorageError, match="which is not configured") as caught:
        HdfsLocation.of(location).web_addresses(HdfsOptions(("nn:9870",), ("ns1",)))
    assert "authorities" in caught.value.remedy
