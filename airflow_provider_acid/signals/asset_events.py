"""Asset events with the partitions and figures of what was compacted, for the outlets that a task declares."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.assets.table import TableName, acid_table
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

log = logging.getLogger(__name__)

MOST_PARTITIONS = 100
"""Partitions named in an event's extra; Airflow keeps every event."""

LONGEST_KEY = 250
"""Characters that Airflow keeps of a partition key."""


def fill_asset_events(
    context: Context,
    outlets: Iterable[object],
    outcomes: Sequence[Outcome],
    metastore: Callable[[], MetastoreAddress],
) -> None:
    """Write figures into the events of the outlets that are ACID tables, and one event per table into each alias.

    Does nothing without such outlets. Whatever goes wrong is logged and never raised.

    :param metastore: tells the metastore's first address; asked only for an alias.
    """
    outlets = list(outlets)
    if not outlets or "outlet_events" not in context:
        return
    from airflow.providers.common.compat.sdk import Asset, AssetAlias

    compacted = [outcome for outcome in outcomes if outcome.state is OutcomeState.COMPACTED]
    try:
        for outlet in outlets:
            events: Any = context["outlet_events"]
            if isinstance(outlet, AssetAlias):
                _add_to_alias(events[outlet], compacted, metastore)
            elif isinstance(outlet, Asset) and (name := TableName.of_uri(outlet.uri)) is not None:
                of_table = [outcome for outcome in compacted if _table(outcome.entity) == (name.database, name.table)]
                events[outlet].extra = figures(of_table)
                _add_partitions(events[outlet], of_table)
    except Exception as error:  # noqa: BLE001 - of Airflow's; the compactions are done and must not be repeated for it
        log.warning("Asset events are without figures: %s: %s", type(error).__name__, error)


def figures(outcomes: Sequence[Outcome]) -> dict[str, object]:
    """What an event says of the compacted partitions of one table; small, whatever their number."""
    names = sorted(outcome.entity.partition for outcome in outcomes if outcome.entity.partition is not None)
    return {
        "compacted": len(outcomes),
        "bytes_before": sum(outcome.bytes_before for outcome in outcomes),
        "bytes_after": sum(outcome.bytes_after for outcome in outcomes),
        "rows": sum(outcome.rows for outcome in outcomes),
        "partitions": names[:MOST_PARTITIONS],
    }


def _add_to_alias(events: Any, compacted: Sequence[Outcome], metastore: Callable[[], MetastoreAddress]) -> None:
    by_table: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in compacted:
        by_table.setdefault(_table(outcome.entity), []).append(outcome)
    for (database, table), outcomes in by_table.items():
        address = metastore()
        events.add(acid_table(address.host, database, table, port=address.port), extra=figures(outcomes))


def _add_partitions(event: Any, outcomes: Sequence[Outcome]) -> None:
    """Since Airflow 3.3 events have partition keys."""
    keys = [outcome.entity.partition or "" for outcome in outcomes]
    keys = [key for key in keys if 0 < len(key) <= LONGEST_KEY]
    if keys and hasattr(event, "add_partitions"):
        event.add_partitions(keys)


def _table(entity: Entity) -> tuple[str, str]:
    return entity.database.lower(), entity.table.lower()
