"""Lineage in the words of OpenLineage, made with its own classes."""

from __future__ import annotations

from openlineage.client.serde import Serde

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.assets.table import acid_table, to_openlineage
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.signals.lineage import lineage_of

METASTORE = MetastoreAddress("metastore", 9083)


def outcome(table: str, partition: str | None, state: OutcomeState = OutcomeState.COMPACTED) -> Outcome:
    return Outcome(Entity("sales", table, partition), state, "because", 1, ("base_1",), 100, 60, 7)


def test_a_table_is_read_and_written_once_whatever_the_number_of_its_partitions() -> None:
    failed = outcome("web", None, OutcomeState.FAILED)
    lineage = lineage_of(
        [outcome("orders", "a"), outcome("orders", "b"), outcome("customers", None), failed], METASTORE
    )
    names = [("hive://metastore:9083", "sales.orders"), ("hive://metastore:9083", "sales.customers")]
    assert [(dataset.namespace, dataset.name) for dataset in lineage.inputs] == names
    assert [(dataset.namespace, dataset.name) for dataset in lineage.outputs] == names
    statistics = [Serde.to_dict(dataset)["outputFacets"]["outputStatistics"] for dataset in lineage.outputs]
    assert [(facet["rowCount"], facet["size"]) for facet in statistics] == [(14, 120), (7, 60)]


def test_an_asset_of_a_table_has_the_same_name_in_openlineage() -> None:
    dataset = to_openlineage(acid_table("metastore", "sales", "orders"), None)
    (written,) = lineage_of([outcome("orders", None)], METASTORE).outputs
    assert (dataset.namespace, dataset.name) == (written.namespace, written.name)


def test_an_operator_that_did_nothing_has_no_lineage() -> None:
    task = AcidCompactionOperator(task_id="c", partitions=[])
    assert task.get_openlineage_facets_on_complete(None) is None
