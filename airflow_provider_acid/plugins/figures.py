"""What the page shows, as JSON: figures and history from the files, queue and locks from the metastore."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Query, Request, status

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import AcidError, ConfigurationError
from airflow_provider_acid.health.arrow_form import key_of
from airflow_provider_acid.health.files import now_ms
from airflow_provider_acid.health.history import HistoryRecord, failures_since
from airflow_provider_acid.health.metastore_view import cleaning_view, queue_view, requests_of
from airflow_provider_acid.health.query import PartitionQuery, metastores_of, one_of, overview, page_of, tables_of
from airflow_provider_acid.health.reader import Health, HealthReader
from airflow_provider_acid.health.store import MILLISECONDS_PER_DAY
from airflow_provider_acid.plugins.access import COMPACT_DAG_ID, UNDO_DAG_ID
from airflow_provider_acid.plugins.backends import DEFAULT_METASTORE, Backends

log = logging.getLogger(__name__)

JsonObject = dict[str, object]

MAX_HISTORY = 500
"""Most records of one answer, newest first."""

MAX_TABLES = 1000
"""Most tables of one answer, those first whose due partitions are most."""

HTTP_422 = 422
"""FastAPI's versions call it differently."""


router = APIRouter()
"""The routes; what they answer from is the application's ``state.backends``."""


def _backends(request: Request) -> Backends:
    backends: Backends = request.app.state.backends
    return backends


def _reader(backends: Annotated[Backends, Depends(_backends)]) -> HealthReader:
    found = backends.reader()
    if found is None:
        raise _error(status.HTTP_409_CONFLICT, "not_configured", "[hive_acid] health_location is not set")
    return found


def _health(reader: Annotated[HealthReader, Depends(_reader)]) -> Health:
    with _readable_errors("The health location cannot be read"):
        return reader.health()


def _known_metastore(backends: Annotated[Backends, Depends(_backends)], metastore: str = DEFAULT_METASTORE) -> str:
    """Nobody may have the server talk to any connection that Airflow has."""
    reader = backends.reader()
    allowed = [DEFAULT_METASTORE] if reader is None else _metastores(_health(reader))
    if metastore not in allowed:
        raise _error(status.HTTP_404_NOT_FOUND, "unknown_metastore", f"nothing is known of {metastore!r}")
    return metastore


def _entity(database: str, table: str, partition: str = "") -> Entity:
    return Entity(database, table, partition or None)


def _query(
    metastore: str = DEFAULT_METASTORE,
    database: str = "",
    table: str = "",
    search: str = "",
    state: Annotated[tuple[str, ...], Query()] = (),
    sort: str = "delta_count",
    descending: bool = True,
    offset: int = 0,
    limit: int = 50,
) -> PartitionQuery:
    try:
        return PartitionQuery(metastore, database, table, search, state, sort, descending, offset, limit)
    except ConfigurationError as error:
        raise _error(HTTP_422, "bad_query", str(error)) from error


KnownHealth = Annotated[Health, Depends(_health)]
KnownMetastore = Annotated[str, Depends(_known_metastore)]
OneEntity = Annotated[Entity, Depends(_entity)]
BackendsOfPage = Annotated[Backends, Depends(_backends)]


@router.get("/overview")
def get_overview(known: KnownHealth, metastore: str = DEFAULT_METASTORE) -> JsonObject:
    """Sums over all partitions of a metastore, and what failed in the last day."""
    sums = overview(known.partitions, metastore)
    failures = failures_since(known.history, metastore, now_ms() - MILLISECONDS_PER_DAY)
    return {
        "metastore": metastore,
        "metastores": _metastores(known),
        "compact_dag_id": COMPACT_DAG_ID,
        "undo_dag_id": UNDO_DAG_ID,
        "failures_last_day": len(failures),
        "last_failure": _failure(failures[0]) if failures else None,
        **sums,
    }


@router.get("/tables")
def get_tables(known: KnownHealth, metastore: str = DEFAULT_METASTORE) -> JsonObject:
    """The tables of a metastore with the sums of their partitions."""
    tables = tables_of(known.partitions, metastore)
    return {"total": len(tables), "tables": tables[:MAX_TABLES]}


@router.get("/partitions")
def get_partitions(known: KnownHealth, query: Annotated[PartitionQuery, Depends(_query)]) -> JsonObject:
    """A page of them, filtered and sorted."""
    return asdict(page_of(known.partitions, query))


@router.get("/partition")
def get_partition(
    known: KnownHealth,
    reader: Annotated[HealthReader, Depends(_reader)],
    entity: OneEntity,
    metastore: str = DEFAULT_METASTORE,
) -> JsonObject:
    """One of them: its figures, its directories, and what was done to it."""
    figures = one_of(known.partitions, key_of(metastore, entity))
    if figures is None:
        message = f"nothing is known of {entity} yet; it is shown after its next evaluation or compaction"
        raise _error(status.HTTP_404_NOT_FOUND, "unknown_partition", message)
    of_it = [record for record in known.history if (record.metastore, record.entity) == (metastore, entity)]
    with _readable_errors("The health location cannot be read"):
        directories = reader.directories(metastore, entity)
    return {"figures": figures, "directories": directories, "history": _objects(of_it)}


@router.get("/history")
def get_history(known: KnownHealth, metastore: str = DEFAULT_METASTORE) -> JsonObject:
    """What was done lately, newest first."""
    of_it = [record for record in known.history if record.metastore == metastore]
    return {"total": len(of_it), "records": _objects(of_it)}


@router.get("/doctor")
def get_doctor(
    reader: Annotated[HealthReader, Depends(_reader)], metastore: str = DEFAULT_METASTORE
) -> JsonObject | None:
    """What the doctor found last, and when; null where it has not looked."""
    with _readable_errors("The health location cannot be read"):
        report = reader.report(metastore)
    return None if report is None else asdict(report)


@router.get("/queue")
def get_queue(backends: BackendsOfPage, metastore: KnownMetastore) -> JsonObject:
    """The metastore's compaction queue at this moment."""
    with _readable_errors("The metastore cannot be asked"), backends.metastore(metastore) as (_, queue):
        return asdict(queue_view(queue, backends.keep_replaced_seconds()))


@router.get("/requests")
def get_requests(
    known: KnownHealth,
    backends: BackendsOfPage,
    metastore: KnownMetastore,
    query: Annotated[PartitionQuery, Depends(_query)],
) -> JsonObject:
    """Which partitions of a page wait in the metastore's queue or are in work at this moment."""
    rows = page_of(known.partitions, query).rows
    entities = [_entity(str(row["database"]), str(row["table"]), str(row["partition"])) for row in rows]
    with _readable_errors("The metastore cannot be asked"), backends.metastore(metastore) as (_, queue):
        return {"requests": requests_of(queue, entities)}


@router.get("/cleaning")
def get_cleaning(backends: BackendsOfPage, metastore: KnownMetastore, entity: OneEntity) -> JsonObject:
    """The requests of one partition, who keeps it from being cleaned, and how long what it replaced is kept."""
    with _readable_errors("The metastore cannot be asked"), backends.metastore(metastore) as (client, queue):
        return {**asdict(cleaning_view(client, queue, entity)), "keep_seconds": backends.keep_replaced_seconds()}


def _metastores(known: Health) -> list[str]:
    recorded = {record.metastore for record in known.history}
    return sorted({*metastores_of(known.partitions), *recorded, DEFAULT_METASTORE})


def _failure(record: HistoryRecord) -> JsonObject:
    entity = record.entity
    return {
        "database": entity.database,
        "table": entity.table,
        "partition": entity.partition or "",
        "message": record.message,
        "ended_ms": record.ended_ms,
    }


def _objects(records: list[HistoryRecord]) -> list[JsonObject]:
    return [{**asdict(record), "kind": record.kind.value} for record in records[:MAX_HISTORY]]


@contextmanager
def _readable_errors(what: str) -> Iterator[None]:
    """Errors of files, connections and the metastore as answers that the page shows in words."""
    try:
        yield
    except HTTPException:
        raise
    except AcidError as error:
        raise _error(status.HTTP_502_BAD_GATEWAY, "unavailable", f"{what}. {error}") from error
    except Exception as error:  # e.g. Airflow's, where a connection does not exist: of several kinds by version
        log.exception("%s", what)
        message = f"{what}: {type(error).__name__}; the log of the API server says more"
        raise _error(status.HTTP_502_BAD_GATEWAY, "unavailable", message) from error


def _error(code: int, name: str, message: str) -> HTTPException:
    return HTTPException(code, {"code": name, "message": message})
