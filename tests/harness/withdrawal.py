"""Requests that somebody takes back, as Hive's ``ABORT COMPACTIONS`` does; Hive 4 only."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.wire import I64, TEXT, Method, Struct, list_of, spec, struct_of


class AbortCompactionRequest(Struct):
    """Only rows still initiated are aborted."""

    thrift_spec = spec((1, "compaction_ids", list_of(I64)), (2, "type", TEXT), (3, "pool", TEXT))


class AbortCompactResponse(Struct):
    """Its only field, a message for each row, is passed over."""

    thrift_spec = spec()


_ABORT_COMPACTIONS = Method("abort_Compactions", (struct_of(AbortCompactionRequest),), struct_of(AbortCompactResponse))


def withdraw(client: AcidMetastoreClient, ids: Sequence[int]) -> None:
    """Take back those of the requests that nobody has claimed."""
    request = AbortCompactionRequest(compaction_ids=list(ids))
    client._invoke("compaction requests", _ABORT_COMPACTIONS, request, repeatable=False)
