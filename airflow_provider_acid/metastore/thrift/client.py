"""The metastore's calls as typed methods: the catalogue's, those of transactions, and those of compactions."""

from __future__ import annotations

import logging
import re

from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.exceptions import MetastoreError, MetastoreUnavailableError, MetastoreVersionError
from airflow_provider_acid.metastore.thrift import structs
from airflow_provider_acid.metastore.thrift.catalog import CatalogCalls
from airflow_provider_acid.metastore.thrift.compactions import CompactionCalls
from airflow_provider_acid.metastore.thrift.late import methods
from airflow_provider_acid.metastore.thrift.txns import POOL_TIMEOUT, TransactionCalls

log = logging.getLogger(__name__)

AS_APACHE_RELEASED = "use a metastore of Hive 3.1 or of Hive 4 as Apache released it"
"""The remedy where a metastore can do something unforeseen."""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class AcidMetastoreClient(CatalogCalls, TransactionCalls, CompactionCalls):
    """Typed calls to a Hive metastore; see :class:`~.connection.MetastoreConnection` for threads and reconnects."""

    def probe(self) -> Hive:
        """Find out which Hive this is, by calls that change nothing and what only Hive 4 answers to them.

        :raises MetastoreVersionError: it has transactions as Hive 4 has, but no call by which workers claim requests.
        """
        version = str(self._invoke("metastore", methods.GET_VERSION, repeatable=True))
        try:
            # Without the list a server with open transactions fails (4.0.1: NullPointerException).
            everything = structs.GetOpenTxnsRequest(exclude_txn_types=[])
            self._invoke("metastore", methods.GET_OPEN_TXNS_REQ, everything, repeatable=True)
        except MetastoreVersionError:
            return Hive(3, version, has_pools=False)
        has_pools = bool(self.config_value(POOL_TIMEOUT))
        if not has_pools:
            self._refuse_without_claims(version)
        return Hive(4, version, has_pools)

    def _refuse_without_claims(self, version: str) -> None:
        try:
            # Without a request nothing is claimed: Hive says that it is missing, and logs that each time.
            self._invoke("compaction queue", methods.FIND_NEXT_COMPACT2, None, repeatable=True)
        except MetastoreVersionError as error:
            raise MetastoreVersionError(
                f"metastore {version}",
                "has transactions as Hive 4 has, but not its call find_next_compact2, by which workers claim requests",
                AS_APACHE_RELEASED,
            ) from error
        except MetastoreUnavailableError:
            raise
        except MetastoreError as error:
            log.debug("The metastore knows find_next_compact2: %s", error)

    def database_uuid(self) -> str | None:
        """What tells the metastore's database from all others; the server makes it once, and keeps it there.

        :returns: None where the server does not say, or says what is none.
        :raises MetastoreUnavailableError: it does not answer.
        """
        try:
            answer: object = self._invoke("metastore", methods.GET_METASTORE_DB_UUID, repeatable=True)
        except MetastoreUnavailableError:
            raise
        except MetastoreError as error:
            log.debug("The metastore does not say which it is: %s", error)
            return None
        return answer if isinstance(answer, str) and _UUID.fullmatch(answer) else None
