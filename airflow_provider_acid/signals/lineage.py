"""Lineage of a compaction for OpenLineage: the tables it read and wrote, which are the same, with figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage


def lineage_of(outcomes: Sequence[Outcome], metastore: MetastoreAddress) -> OperatorLineage[Any, Any]:
    """What Airflow's OpenLineage provider asks of a task, which calls this only where it is installed.

    :param metastore: its first address, after which OpenLineage names Hive's tables.
    """
    from airflow.providers.common.compat.openlineage.facet import (
        InputDataset,
        OutputDataset,
        OutputStatisticsOutputDatasetFacet,
    )
    from airflow.providers.openlineage.extractors import OperatorLineage

    tables: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.state is OutcomeState.COMPACTED:
            tables.setdefault(outcome.entity.full_table_name.lower(), []).append(outcome)
    namespace = f"hive://{metastore}"
    return OperatorLineage(
        inputs=[InputDataset(namespace, name) for name in tables],
        outputs=[
            OutputDataset(
                namespace,
                name,
                outputFacets={
                    "outputStatistics": OutputStatisticsOutputDatasetFacet(
                        rowCount=sum(outcome.rows for outcome in of_table),
                        size=sum(outcome.bytes_after for outcome in of_table),
                    )
                },
            )
            for name, of_table in tables.items()
        ],
    )
