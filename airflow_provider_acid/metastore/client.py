"""The metastore's calls as typed methods: hmsclient, plus the ACID calls it lacks."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_acid.exceptions import MetastoreVersionError
from airflow_provider_acid.metastore import structs
from airflow_provider_acid.metastore.catalog import CatalogCalls
from airflow_provider_acid.metastore.compactions import CompactionCalls
from airflow_provider_acid.metastore.txns import TransactionCalls


@dataclass(frozen=True)
class MetastoreFacts:
    """What a metastore can do, found out by asking it and not by its version string.

    :param version: what the server says its version is; for messages only.
    :param supports_thrift_queue: whether workers and cleaners can do their bookkeeping over Thrift (Hive 4).
    """

    version: str
    supports_thrift_queue: bool


class AcidMetastoreClient(CatalogCalls, TransactionCalls, CompactionCalls):
    """Typed calls to a Hive metastore; see :class:`~.connection.MetastoreConnection` for threads and reconnects."""

    def probe(self) -> MetastoreFacts:
        """Find out what the server can do, by a call that changes nothing."""
        version = str(self._call("metastore", lambda thrift: thrift.getVersion(), repeatable=True))
        try:
            # Without the list a server with open transactions fails (4.0.1: NullPointerException).
            everything = structs.GetOpenTxnsRequest(exclude_txn_types=[])
            self._invoke("metastore", structs.GET_OPEN_TXNS_REQ, everything, repeatable=True)
        except MetastoreVersionError:
            return MetastoreFacts(version, supports_thrift_queue=False)
        return MetastoreFacts(version, supports_thrift_queue=True)
