"""What libhdfs is told besides Hadoop's configuration, without any HDFS."""

from __future__ import annotations

from typing import Any

import pytest
from pyarrow import fs

from airflow_provider_acid.storages.hdfs import libhdfs
from airflow_provider_acid.storages.hdfs.location import HdfsLocation
from airflow_provider_acid.storages.hdfs.options import HdfsOptions

OBSERVERS = "dfs.client.failover.observer.auto-msync-period."


@pytest.mark.parametrize(
    ("location", "nameservices"),
    [
        ("hdfs://ns1/warehouse/t", {"ns1", "ns2"}),
        ("hdfs:///warehouse/t", {"ns2"}),
        ("hdfs://namenode:8020/warehouse/t", {"ns2"}),
    ],
)
def test_an_observer_is_not_asked_before_it_has_what_others_wrote(
    monkeypatch: pytest.MonkeyPatch, location: str, nameservices: set[str]
) -> None:
    told: dict[str, str] = {}

    def file_system(host: str, port: int, *, user: str | None, extra_conf: dict[str, str]) -> Any:
        told.update(extra_conf)
        return object()

    monkeypatch.setattr(fs, "HadoopFileSystem", file_system)
    monkeypatch.setattr(libhdfs, "_connections", {})
    libhdfs.connection(HdfsLocation.of(location), HdfsOptions(authorities=("ns2", "other:8020"), libhdfs=True))
    assert {name.removeprefix(OBSERVERS): value for name, value in told.items() if name.startswith(OBSERVERS)} == {
        name: "0" for name in nameservices
    }
