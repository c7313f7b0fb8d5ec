"""Of thousands of tables no single call asks for the write ids: it would take longer than a call may."""

from __future__ import annotations

from airflow_provider_acid.metastore.thrift import methods, structs
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.thrift.txns import WRITE_IDS_PER_CALL
from airflow_provider_acid.metastore.thrift.wire import Method, Struct


class Server(AcidMetastoreClient):
    """A client whose server notes what it is asked; of each table as many write ids as its name says."""

    def __init__(self) -> None:
        super().__init__([MetastoreAddress("nowhere")])
        self.asked: list[tuple[int, str]] = []

    def _invoke(self, subject: str, method: Method, *arguments: object, repeatable: bool) -> Struct:
        assert method is methods.GET_VALID_WRITE_IDS
        (request,) = arguments
        assert isinstance(request, structs.GetValidWriteIdsRequest)
        self.asked.append((len(request.full_table_names), request.valid_txn_list))
        tables = [
            structs.TableValidWriteIds(
                full_table_name=name,
                write_id_high_water_mark=int(name.removeprefix("d.t")),
                invalid_write_ids=[],
                min_open_write_id=0,
                aborted_bits=b"",
            )
            for name in reversed(request.full_table_names)
        ]
        return structs.GetValidWriteIdsResponse(tables=tables)


def test_each_call_asks_for_some_tables_by_the_same_transactions() -> None:
    server = Server()
    count = 2 * WRITE_IDS_PER_CALL + 1
    found = server.valid_write_ids([f"d.T{number}" for number in range(count)], "5:9:::")
    assert [(ids.full_table_name, ids.high_water_mark) for ids in found] == [(f"d.t{n}", n) for n in range(count)]
    assert server.asked == [(number, "5:9:::") for number in (WRITE_IDS_PER_CALL, WRITE_IDS_PER_CALL, 1)]


def test_of_no_table_nothing_is_asked() -> None:
    server = Server()
    assert server.valid_write_ids([], "5:9:::") == []
    assert server.asked == []
