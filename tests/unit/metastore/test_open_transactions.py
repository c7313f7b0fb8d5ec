"""How the open transactions of every type are asked for, on a server that knows types and on one that does not."""

from __future__ import annotations

from airflow_provider_acid.exceptions import MetastoreVersionError
from airflow_provider_acid.metastore.thrift import methods, structs
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.thrift.wire import Method, Struct
from airflow_provider_acid.metastore.values import OpenTxns

READ_ONLY = 5
OPEN = (3, READ_ONLY)


class Server(AcidMetastoreClient):
    """A client whose server is asked nothing; it leaves the read-only transaction out as Hive 4 does."""

    def __init__(self, *, knows_types: bool) -> None:
        super().__init__([MetastoreAddress("nowhere")])
        self.knows_types = knows_types
        self.asked: list[str] = []

    def _invoke(self, subject: str, method: Method, *arguments: object, repeatable: bool) -> Struct:
        assert repeatable
        self.asked.append(method.name)
        if method is methods.GET_OPEN_TXNS_REQ:
            if not self.knows_types:
                raise MetastoreVersionError(subject, "lacks a call", "none")
            (request,) = arguments
            assert isinstance(request, structs.GetOpenTxnsRequest)
            assert request.exclude_txn_types == []
            return self._answer(OPEN)
        return self._answer((3,) if self.knows_types else OPEN)

    def _answer(self, open_txns: tuple[int, ...]) -> Struct:
        return structs.GetOpenTxnsResponse(txn_high_water_mark=9, open_txns=[*open_txns, 4], aborted_bits=b"\x04")


def test_hive_4_is_asked_to_leave_out_no_type() -> None:
    client = Server(knows_types=True)
    assert client.open_transactions() == OpenTxns(9, OPEN, (4,), 3)
    client.open_transactions()
    assert client.asked == ["get_open_txns_req"] * 2


def test_hive_3_is_asked_for_types_once_and_never_again() -> None:
    client = Server(knows_types=False)
    for _ in range(3):
        assert client.open_transactions() == OpenTxns(9, OPEN, (4,), 3)
    assert client.asked == ["get_open_txns_req", *["get_open_txns"] * 3]
