"""A queue behind networks that can lose answers: that to the metastore, and that to its database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from sqlalchemy.engine import make_url

from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.hive4.unpooled_queue import UnpooledCompactionQueue
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.queues import open_queue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_server import MetastoreServer
from tests.harness.network_proxy import NetworkProxy

PATIENCE_SECONDS = 3.0


@dataclass(frozen=True)
class Shaky:
    """The queue and its networks.

    :param database: None where the queue needs none.
    """

    queue: CompactionQueue
    thrift: NetworkProxy
    database: NetworkProxy | None

    def lose_answer_to_request(self) -> None:
        """The next answer of the metastore itself gets lost."""
        self.queue.row(1)
        self.thrift.lose_answer()

    def lose_answer_to_change(self, *, looks: int = 1) -> None:
        """The looks at the row pass, and the answer to the change that follows them gets lost."""
        self.queue.row(1)
        if self.database is None:
            self.thrift.lose_answer(after=looks)
        elif looks and isinstance(self.queue, UnpooledCompactionQueue):
            # It looks in the database, and changes over Thrift all but its claims.
            self.thrift.lose_answer()
        else:
            self.database.lose_answer_to(b"UPDATE", b"COMMIT")

    def refuse(self, is_refusing: bool) -> None:
        """Whether new connections are closed at once; those that stand are cut."""
        for proxy in filter(None, (self.thrift, self.database)):
            proxy.refuse(is_refusing)


@contextmanager
def open_shaky(server: MetastoreServer) -> Iterator[Shaky]:
    """The queue of a metastore behind such networks."""
    with ExitStack() as stack:
        thrift = stack.enter_context(NetworkProxy(server.host, server.port))
        address = MetastoreAddress(thrift.host, thrift.port)
        client = stack.enter_context(AcidMetastoreClient([address], timeout_seconds=20))
        if not isinstance(server.database, ServerDatabase):
            yield Shaky(open_queue(client), thrift, None)
            return
        url = make_url(server.database.url)
        proxy = stack.enter_context(NetworkProxy(url.host or "", url.port or 0))
        behind = url.set(host=proxy.host, port=proxy.port)
        database = MetastoreDatabase(behind, patience_seconds=PATIENCE_SECONDS)
        yield Shaky(open_queue(client, database), thrift, proxy)
