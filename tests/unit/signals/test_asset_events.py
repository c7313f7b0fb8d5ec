"""Assets of ACID tables, and what the operator writes into their events."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import Asset, AssetAlias
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.assets.table import TableName, acid_table
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.signals.asset_events import LONGEST_KEY, MOST_PARTITIONS, fill_asset_events

ORDERS = acid_table("metastore", "sales", "orders")


def outcome(partition: str | None, table: str = "orders", state: OutcomeState = OutcomeState.COMPACTED) -> Outcome:
    return Outcome(Entity("sales", table, partition), state, "because", 1, ("base_1",), 100, 60, 7)


def fill(*outlets: object, outcomes: list[Outcome]) -> OutletEventAccessors:
    events = OutletEventAccessors()
    context: Any = {"outlet_events": events}
    fill_asset_events(context, outlets, outcomes, lambda: MetastoreAddress("Metastore", 9999))
    return events


@pytest.mark.parametrize(
    "uri",
    [
        "hive-acid://metastore:9083/sales/orders",
        "hive-acid://metastore/sales/orders/",
        "HIVE-ACID://Metastore/Sales/ORDERS",
    ],
)
def test_a_table_has_one_uri_however_it_is_written(uri: str) -> None:
    assert Asset(uri=uri).uri == "hive-acid://metastore:9083/sales/orders" == ORDERS.uri


def test_a_metastore_may_have_an_ipv6_address() -> None:
    asset = acid_table("FE80::1", "d", "t", port=1)
    assert asset.uri == "hive-acid://[fe80::1]:1/d/t"
    assert Asset(uri="hive-acid://[fe80::1]/d/t").uri == "hive-acid://[fe80::1]:9083/d/t"


@pytest.mark.parametrize("path", ["", "/", "/sales", "/sales/orders/p=1"])
def test_a_uri_without_a_table_is_refused(path: str) -> None:
    uri = f"hive-acid://metastore{path}"
    with pytest.raises(ConfigurationError, match="names no table.* write hive-acid://host:port/database/table"):
        TableName.of_uri(uri)
    with pytest.raises(ValueError, match="names no table"):
        Asset(uri=uri)


def test_another_scheme_is_not_of_a_table_here() -> None:
    assert TableName.of_uri("hive://metastore:9083/sales/orders") is None


def test_an_event_has_the_partitions_and_figures_of_its_own_table() -> None:
    outcomes = [
        outcome("day=2"),
        outcome("day=1"),
        outcome("day=3", state=OutcomeState.NOTHING_TO_MERGE),
        outcome("day=4", table="customers"),
    ]
    event = fill(ORDERS, outcomes=outcomes)[ORDERS]
    assert event.extra == {
        "compacted": 2,
        "bytes_before": 200,
        "bytes_after": 120,
        "rows": 14,
        "partitions": ["day=1", "day=2"],
    }
    assert event.partition_keys == {"day=1", "day=2"}


def test_an_unpartitioned_table_has_figures_and_no_keys() -> None:
    event = fill(ORDERS, outcomes=[outcome(None)])[ORDERS]
    assert (event.extra["compacted"], event.extra["partitions"], event.partition_keys) == (1, [], set())


def test_where_nothing_was_compacted_the_event_says_so() -> None:
    assert fill(ORDERS, outcomes=[])[ORDERS].extra["compacted"] == 0


def test_many_partitions_do_not_swell_an_event_and_long_names_are_no_keys() -> None:
    names = [f"p={number:04d}" for number in range(MOST_PARTITIONS + 5)] + ["q" * (LONGEST_KEY + 1)]
    event = fill(ORDERS, outcomes=[outcome(name) for name in names])[ORDERS]
    assert event.extra["compacted"] == len(names)
    assert event.extra["partitions"] == names[:MOST_PARTITIONS]
    assert event.partition_keys == set(names[:-1])


def test_an_alias_gets_one_event_for_each_table_that_was_compacted() -> None:
    alias = AssetAlias("compacted")
    outcomes = [outcome("a"), outcome("b"), outcome(None, "customers"), outcome("x", "web", OutcomeState.SKIPPED)]
    found = {
        event.dest_asset_key.uri: event.extra["compacted"]
        for event in fill(alias, outcomes=outcomes)[alias].asset_alias_events
    }
    assert found == {"hive-acid://metastore:9999/sales/orders": 2, "hive-acid://metastore:9999/sales/customers": 1}


def test_other_outlets_are_left_alone() -> None:
    other = Asset("s3://bucket/report")
    assert fill(other, outcomes=[outcome("a")])[other].extra == {}


def test_what_airflow_does_not_take_is_logged_and_fails_nothing(caplog: pytest.LogCaptureFixture) -> None:
    context: Any = {"outlet_events": {}}
    with caplog.at_level(logging.WARNING):
        fill_asset_events(context, [ORDERS], [outcome("a")], lambda: MetastoreAddress("m"))
    assert "Asset events are without figures: KeyError" in caplog.text
