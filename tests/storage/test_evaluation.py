"""An evaluation asks a store for each partition's listing once, and for nothing else."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from benchmarks import evaluation as benchmark
from benchmarks.evaluation import DELTAS
from tests.harness.fault_proxy import FaultProxy
from tests.harness.hdfs_server import HdfsServer
from tests.harness.s3_server import S3Server
from tests.storage.hdfs_stores import USER, Administrator
from tests.storage.s3_site import Site
from tests.unit.compaction.evaluated_tables import EvaluatedTables

PARTITIONS = [f"p={number:05d}" for number in range(10)]
COMMAND = re.compile(r"FSNamesystem\.audit: .*\tcmd=(\w+)\tsrc=(\S+)\t")


@pytest.fixture
def warehouse(hdfs: HdfsServer) -> str:
    """The path of a database; with a table of ten partitions."""
    path = f"/evaluated/{uuid.uuid4().hex}/d.db"
    administrator = Administrator(hdfs, path)
    for partition in PARTITIONS:
        for delta in DELTAS:
            administrator.make_directory(f"t/{partition}/{delta}")
            administrator.write(f"t/{partition}/{delta}/bucket_00000", b"rows")
    return path


def due(storages: Storages, warehouse: str) -> int:
    return len(EvaluatedTables({"t": len(PARTITIONS)}, storages, warehouse=warehouse).evaluate().due)


def asked(hdfs: HdfsServer, path: str) -> Counter[tuple[str, str]]:
    """What the NameNode was asked so far about what lies there, by its audit log."""
    found = COMMAND.findall(hdfs.log_file("NameNode").read_text(errors="replace"))
    return Counter((command, place) for command, place in found if place.startswith(path))


@pytest.mark.parametrize("is_by_libhdfs", [False, True], ids=["webhdfs", "libhdfs"])
def test_a_namenode_is_asked_once_for_each_directory(
    hdfs: HdfsServer, libhdfs: None, warehouse: str, is_by_libhdfs: bool
) -> None:
    options = HdfsOptions((hdfs.web_address,), user=USER, libhdfs=is_by_libhdfs)
    before = asked(hdfs, warehouse)
    assert due(Storages((options,)), hdfs.uri + warehouse) == len(PARTITIONS)
    made = asked(hdfs, warehouse) - before
    partitions = [f"{warehouse}/t/{partition}" for partition in PARTITIONS]
    listed = Counter([*partitions, *(f"{partition}/{delta}" for partition in partitions for delta in DELTAS)])
    assert Counter({place: made[command, place] for command, place in made if command == "listStatus"}) == listed
    # libhdfs looks whether what it is to list is a directory.
    looks = {place for command, place in made if command == "getfileinfo"}
    assert looks == (set(partitions) if is_by_libhdfs else set())
    assert {command for command, _ in made} <= {"listStatus", "getfileinfo"}


def test_s3_is_asked_once_for_each_partition(s3: S3Server) -> None:
    site = Site(s3)
    for partition in PARTITIONS:
        for delta in DELTAS:
            site.client.put_object(Bucket=site.bucket, Key=f"d.db/t/{partition}/{delta}/bucket_00000", Body=b"rows")
    with FaultProxy(s3.endpoint) as proxy:
        options = replace(site.options, endpoint=proxy.addresses[s3.endpoint])
        storages = Storages((replace(options, credentials=site.credentials),))
        assert due(storages, f"s3a://{site.bucket}/d.db") == len(PARTITIONS)
    assert {exchange.method for exchange in proxy.exchanges} == {"GET"}
    prefixes = [parse_qs(urlsplit(exchange.target).query)["prefix"] for exchange in proxy.exchanges]
    assert sorted(prefixes) == [[f"d.db/t/{partition}/"] for partition in PARTITIONS]


def test_the_benchmark_compares_evaluations_with_bare_listings() -> None:
    lines = list(benchmark.run("local", partitions=[2, 4], threads=[1, 2], rounds=1))
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert [row[1:4] for row in cells[2:]] == [
        [size, threads, what] for size in "24" for what in ("evaluation", "listing") for threads in "12"
    ]
    assert {len(row) for row in cells} == {12}
