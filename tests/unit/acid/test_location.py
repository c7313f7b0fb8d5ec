"""Two spellings of one directory are one directory, and who lies at, above or below it is found."""

from __future__ import annotations

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.location import Directory, Occupied


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:///wh/t", "file:/wh/t"),
        ("file:/wh/t/", "file:/wh//t"),
        ("file:/wh/x/../t", "file:/wh/./t"),
        ("HDFS://NameNode:8020/wh/t", "hdfs://namenode:8020/wh/t"),
        ("s3://bucket/t", "s3a://Bucket/t/"),
        ("s3n://bucket", "s3a://bucket/"),
        ("webhdfs://nn:9870/wh/t", "hdfs://nn:8020/wh/t"),
        ("hdfs://nn/wh/t", "hdfs://nn:8020/wh/t"),
    ],
)
def test_spellings_of_one_directory(one: str, other: str) -> None:
    assert Directory.of(one) == Directory.of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:/wh/t", "file:/wh/T"),
        ("file:/wh/t", "hdfs://nn/wh/t"),
        ("hdfs://nn1/wh/t", "hdfs://nn2/wh/t"),
        ("file:/wh/t/p=a%2Fb", "file:/wh/t/p=a/b"),
        ("file:/wh/t?x#y", "file:/wh/t"),
    ],
)
def test_different_directories(one: str, other: str) -> None:
    assert Directory.of(one) != Directory.of(other)


OWN, OTHER = Entity("d", "own"), Entity("d", "other")


@pytest.mark.parametrize(
    "uri", ["file:/wh/t", "file:///wh/t/", "file:/wh", "file:/", "file:/wh/t/p=a", "file:/wh/t/a/b"]
)
def test_another_at_above_or_below_is_found(uri: str) -> None:
    occupied = Occupied([(OWN, "file:/wh/t"), (OTHER, uri)])
    assert occupied.other(Directory.of("file:/wh/t"), OWN) == (OTHER, uri)


@pytest.mark.parametrize("uri", ["file:/wh/t2", "file:/wh/x/t", "file:/whx", "hdfs://nn/wh/t", ""])
def test_another_elsewhere_is_none(uri: str) -> None:
    occupied = Occupied([(OWN, "file:/wh/t"), (OTHER, uri)])
    assert occupied.other(Directory.of("file:/wh/t"), OWN) is None


def test_of_many_below_one_other_than_the_own_is_found() -> None:
    owners = [(OWN, "file:/wh/a"), *((Entity("d", f"t{number}"), f"file:/wh/{number}") for number in range(5))]
    found = Occupied(owners).other(Directory.of("file:/wh"), OWN)
    assert found is not None
    assert found[0] != OWN
    assert Occupied(owners[:1]).other(Directory.of("file:/wh"), OWN) is None
