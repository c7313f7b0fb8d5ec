"""The buttons beside a task's log: pushed early, read by both Airflows, and stored with the DAG."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, XCom
from airflow.serialization.serialized_objects import DagSerialization

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.get_provider_info import get_provider_info
from airflow_provider_acid.links.compaction import AcidPageLink, SparkUiLink, page_address
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.compaction import AcidCompactionOperator

ONE = Entity("sales", "orders", "day=2026-01-01/shop=a%2Fb ü")
TABLE = Entity("sales", "customers")


class Task:
    """A running task that keeps what is pushed."""

    def __init__(self) -> None:
        self.pushed: dict[str, object] = {}

    def xcom_push(self, key: str, value: object) -> None:
        self.pushed[key] = value


def context(ti: Any) -> Any:
    return {"ti": ti}


@pytest.mark.parametrize(
    ("entities", "base_url", "address"),
    [
        ([ONE], "", "/hive-acid/#/partition/sales/orders/day%3D2026-01-01%2Fshop%3Da%252Fb%20%C3%BC"),
        ([TABLE], "", "/hive-acid/#/partition/sales/customers"),
        ([TABLE], "https://flows.example.org", "/hive-acid/#/partition/sales/customers"),
        ([TABLE], "https://example.org/airflow/", "/airflow/hive-acid/#/partition/sales/customers"),
        ([ONE, TABLE], "", "/hive-acid/"),
        ([], "", "/hive-acid/"),
    ],
)
def test_a_partition_has_a_page_and_several_have_the_overview(
    monkeypatch: pytest.MonkeyPatch, entities: list[Entity], base_url: str, address: str
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    assert page_address(entities) == address


@pytest.mark.parametrize(
    ("entities", "address"),
    [
        ([TABLE], "/hive-acid/#/partition/sales/customers?metastore=other%2F1"),
        ([], "/hive-acid/#/partitions?metastore=other%2F1"),
    ],
)
def test_the_page_is_that_of_the_metastore_which_was_compacted(entities: list[Entity], address: str) -> None:
    assert page_address(entities, "other/1") == address


def test_an_address_is_found_under_the_key_that_it_was_pushed_under(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task()
    SparkUiLink().push(context(task), "http://driver:4040")
    AcidPageLink().push_page_of(context(task), [TABLE], "hive_acid_default")
    monkeypatch.setattr(XCom, "get_value", lambda ti_key, key: task.pushed.get(key))
    assert SparkUiLink().get_link(None, ti_key=None) == "http://driver:4040"
    assert AcidPageLink().get_link(None, ti_key=None).endswith("/partition/sales/customers")


def test_without_an_address_there_is_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(XCom, "get_value", lambda ti_key, key: None)
    assert SparkUiLink().get_link(None, ti_key=None) == ""


def test_a_link_that_cannot_be_pushed_is_logged_and_fails_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(**_: object) -> None:
        raise ConnectionError("the API is down")

    with caplog.at_level(logging.WARNING):
        AcidPageLink().push_page_of(context(SimpleNamespace(xcom_push=fail)), [TABLE], "hive_acid_default")
    assert "The link Hive ACID is not shown: ConnectionError: the API is down" in caplog.text


def test_outside_a_task_nothing_is_pushed() -> None:
    SparkUiLink().push({}, "http://driver:4040")


def test_the_links_are_stored_with_the_dag() -> None:
    with DAG("linked", schedule=None) as dag:
        AcidCompactionOperator(task_id="compact", partitions=[])
        AcidCleanerOperator.partial(task_id="clean").expand(partitions=[[]])
    stored = json.loads(json.dumps(DagSerialization.to_dict(dag)))
    restored = DagSerialization.from_dict(stored)
    both = {"Spark UI": "hive_acid_spark_ui", "Hive ACID": "hive_acid_page"}
    for task_id, links in (("compact", both), ("clean", {"Hive ACID": "hive_acid_page"})):
        found = restored.get_task(task_id).operator_extra_links
        assert {link.name: link.xcom_key for link in found} == links


def test_airflow_2_is_told_of_every_link_class() -> None:
    classes = {type(link) for link in AcidCompactionOperator.operator_extra_links}
    names = {f"{cls.__module__}.{cls.__qualname__}" for cls in classes}
    assert set(get_provider_info()["extra-links"]) == names  # type: ignore[call-overload]
