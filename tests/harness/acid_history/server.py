"""The model metastore as a server that the product's own client and queue speak to, at the level of Thrift's calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from hmsclient.genthrift.hive_metastore import ttypes

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_3
from airflow_provider_acid.acid.write_ids import ValidTxnList
from airflow_provider_acid.exceptions import MetastoreVersionError, OwnershipLostError
from airflow_provider_acid.metastore.queue_rules import in_cleaning_order
from airflow_provider_acid.metastore.thrift import methods, structs
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.thrift.wire import Method, Struct
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState, DatabaseInfo, TableInfo
from tests.harness.acid_history.looks import Looks
from tests.harness.acid_history.metastore import ENTITY, NOW_MS, TABLE, Lock, ModelMetastore, State, TxnType

_STATES = {State.OPEN: ttypes.TxnState.OPEN, State.ABORTED: ttypes.TxnState.ABORTED}
_MAJOR = 2


_CHANGES = frozenset(
    method.name
    for method in (
        methods.OPEN_TXNS,
        methods.COMMIT_TXN,
        methods.ABORT_TXN,
        methods.HEARTBEAT,
        methods.LOCK,
        methods.MARK_COMPACTED,
        methods.MARK_CLEANED,
        methods.MARK_FAILED,
    )
)


class ModelServer:
    """Answers the calls by which the product asks of transactions, locks and requests.

    :param forget: drops what is known of aborted transactions up to a write id.
    """

    def __init__(self, metastore: ModelMetastore, hive_version: int, forget: Callable[[int], None]) -> None:
        self._metastore = metastore
        self._is_hive_4 = hive_version == 4
        self._forget = forget
        self._answers: dict[str, Callable[..., object]] = {
            methods.GET_OPEN_TXNS.name: lambda: self._open_txns(hidden=(TxnType.READ_ONLY,)),
            methods.GET_OPEN_TXNS_REQ.name: self._open_txns_but,
            methods.GET_OPEN_TXNS_INFO.name: self._open_txns_infos,
            methods.GET_VALID_WRITE_IDS.name: self._write_ids,
            methods.OPEN_TXNS.name: self._opened,
            methods.COMMIT_TXN.name: lambda request: self._end(request.txnid, State.COMMITTED),
            methods.ABORT_TXN.name: lambda request: self._end(request.txnid, State.ABORTED),
            methods.HEARTBEAT.name: lambda request: self._check_open(request.txnid),
            methods.LOCK.name: self._locked,
            methods.CHECK_LOCK.name: lambda request: _lock_answer(metastore.looked_up(request.lockid)),
            methods.SHOW_LOCKS.name: lambda request: structs.ShowLocksResponse(
                locks=[_shown(lock) for lock in metastore.locks]
            ),
            methods.SHOW_COMPACT.name: self._compactions,
            methods.MARK_COMPACTED.name: lambda info: metastore.mark_compacted(info.id),
            methods.MARK_CLEANED.name: self._mark_cleaned,
            methods.MARK_FAILED.name: lambda info: metastore.move_row(info.id, CompactionState.FAILED),
        }

    def answer(self, method: Method, *arguments: object) -> Any:
        """A call's result."""
        return self._answers[method.name](*arguments)

    def _open_txns(self, hidden: Collection[TxnType]) -> Struct:
        metastore = self._metastore
        open_ids = [txn for txn in metastore.txns(State.OPEN) if metastore.type(txn) not in hidden]
        aborted = metastore.txns(State.ABORTED)
        ids = sorted([*open_ids, *aborted])
        return structs.GetOpenTxnsResponse(
            txn_high_water_mark=metastore.txn_high_water_mark,
            open_txns=ids,
            min_open_txn=min(open_ids, default=None),
            aborted_bits=_bits(ids, aborted),
        )

    def _open_txns_but(self, request: Struct) -> Struct:
        if not self._is_hive_4:
            raise MetastoreVersionError("open transactions", "Hive 3 has no such call", "none")
        return self._open_txns(hidden=[TxnType(number) for number in request.exclude_txn_types])

    def _open_txns_infos(self) -> Struct:
        metastore = self._metastore
        infos = [
            structs.TxnInfo(
                id=txn,
                state=_STATES[state],
                user="eve",
                hostname=metastore.host(txn),
                startedTime=NOW_MS,
                lastHeartbeatTime=0 if txn in metastore.silent else NOW_MS,
            )
            for state in _STATES
            for txn in metastore.txns(state)
        ]
        return structs.GetOpenTxnsInfoResponse(txn_high_water_mark=metastore.txn_high_water_mark, open_txns=infos)

    def _write_ids(self, request: Struct) -> Struct:
        assert request.full_table_names == [TABLE]
        found = self._metastore.valid_write_ids(ValidTxnList.parse(request.valid_txn_list))
        ids = sorted(found.open | found.aborted)
        table = structs.TableValidWriteIds(
            full_table_name=TABLE,
            write_id_high_water_mark=found.high_water_mark,
            invalid_write_ids=ids,
            min_open_write_id=found.min_open,
            aborted_bits=_bits(ids, found.aborted),
        )
        return structs.GetValidWriteIdsResponse(tables=[table])

    def _opened(self, request: Struct) -> Struct:
        type = TxnType(request.txn_type) if self._is_hive_4 and request.txn_type is not None else TxnType.DEFAULT
        return structs.OpenTxnsResponse(txn_ids=[self._metastore.open(type, request.hostname)])

    def _check_open(self, txn: int) -> None:
        if self._metastore.state(txn) is not State.OPEN:
            raise OwnershipLostError(f"transaction {txn}", "is not open", "none")

    def _end(self, txn: int, state: State) -> None:
        self._check_open(txn)
        self._metastore.end(txn, state)

    def _locked(self, request: Any) -> Struct:
        self._check_open(request.txnid)
        (component,) = request.component
        return _lock_answer(self._metastore.lock(request.txnid, component.type))

    def _compactions(self, request: Struct) -> Struct:
        """All of them: whoever asks for some filters them himself, too."""
        return structs.ShowCompactResponse(compactions=[_element(row) for row in self._metastore.rows.values()])

    def _mark_cleaned(self, info: Struct) -> None:
        self.end_row(info.id, info.highest_write_id)

    def end_row(self, id: int, highest_write_id: int | None) -> None:
        """A row becomes history, and aborted transactions up to a write id are forgotten (``markCleaned``)."""
        self._metastore.move_row(id, CompactionState.SUCCEEDED)
        if highest_write_id is not None:
            self._forget(highest_write_id)


class ModelClient(AcidMetastoreClient):
    """The product's client, at a model metastore instead of a connection; its looks count.

    :param warehouse: where the table lies, in its conventional place.
    """

    def __init__(self, server: ModelServer, looks: Looks, warehouse: Path) -> None:
        super().__init__([MetastoreAddress("nowhere", 9083)], user="eve")
        self._server = server
        self._looks = looks
        self._warehouse = warehouse

    def _invoke(self, subject: str, method: Method, *arguments: object, repeatable: bool) -> Any:
        if method.name not in _CHANGES:
            self._looks.pass_by()
        return self._server.answer(method, *arguments)

    def for_another_thread(self) -> ModelClient:
        """Itself: the only other thread is one that never comes to beat."""
        return self

    def interrupt(self) -> None:
        """Nothing: no call lasts."""

    def get_table(self, database: str, name: str) -> TableInfo:
        """The one table."""
        location = str(table_folder(self._warehouse))
        return TableInfo(database, name, location, (), (), {}, -1, (), "MANAGED_TABLE", "", "hive")

    def get_database(self, name: str) -> DatabaseInfo:
        """Its database."""
        return DatabaseInfo(name, {}, str(table_folder(self._warehouse).parent))

    def config_value(self, name: str) -> str:
        """Where tables lie; all else is as it comes."""
        return str(self._warehouse) if name == "metastore.warehouse.dir" else ""

    def server_now_ms(self) -> int:
        """The one time there is."""
        return NOW_MS


class Hive3Queue:
    """The part of Hive 3's queue that cleaners use; on Hive 4 that is the product's own, over :class:`ModelClient`."""

    database = None
    hive = HIVE_3

    def __init__(self, metastore: ModelMetastore, server: ModelServer) -> None:
        self._metastore = metastore
        self._server = server

    def ready_to_clean(self, entities: Iterable[Entity]) -> list[CompactionRow]:
        """See :class:`~airflow_provider_acid.metastore.queue.CompactionQueue`."""
        return in_cleaning_order(self.rows(state=CompactionState.READY_FOR_CLEANING), entities)

    def row(self, id: int) -> CompactionRow | None:
        """See :class:`~airflow_provider_acid.metastore.queue.CompactionQueue`."""
        return self._metastore.rows.get(id)

    def rows(
        self, entity: Entity | None = None, state: CompactionState | None = None, pool: str | None = None
    ) -> list[CompactionRow]:
        """See :class:`~airflow_provider_acid.metastore.queue.CompactionQueue`."""
        return [row for row in self._metastore.rows.values() if state in (None, row.state)]

    def keep(self, row: CompactionRow) -> None:
        """See :class:`~airflow_provider_acid.metastore.queue.CompactionQueue`."""

    def cleaned(self, row: CompactionRow, highest_write_id: int | None) -> None:
        """See :class:`~airflow_provider_acid.metastore.queue.CompactionQueue`."""
        self._server.end_row(row.id, highest_write_id)


def table_folder(warehouse: Path) -> Path:
    """Where the table lies."""
    return warehouse / "db.db" / "t"


def _bits(ids: Sequence[int], marked: Collection[int]) -> bytes:
    """As Java's BitSet: bit i, little-endian, for id i."""
    bits = sum(1 << place for place, id in enumerate(ids) if id in marked)
    return bits.to_bytes((len(ids) + 7) // 8, "little")


def _lock_answer(lock: Lock) -> Struct:
    state = ttypes.LockState.ACQUIRED if lock.is_granted else ttypes.LockState.WAITING
    return structs.LockResponse(lock_id=lock.id, state=state)


def _shown(lock: Lock) -> Struct:
    return structs.ShownLock(
        lockid=lock.id,
        dbname=ENTITY.database,
        tablename=ENTITY.table,
        state=ttypes.LockState.ACQUIRED if lock.is_granted else ttypes.LockState.WAITING,
        type=int(lock.kind),
        txnid=lock.txn,
        acquiredat=NOW_MS if lock.is_granted else None,
        lastheartbeat=NOW_MS,
        user="eve",
        hostname="there",
    )


def _element(row: CompactionRow) -> Struct:
    return structs.ShowCompactResponseElement(
        id=row.id,
        database=row.entity.database,
        table=row.entity.table,
        type=_MAJOR,
        state=row.state.value,
        worker_id=row.worker_id,
        pool=row.pool,
        start_ms=row.start_ms,
        next_txn_id=row.next_txn_id,
        txn_id=row.txn_id,
        commit_ms=row.commit_ms,
        highest_write_id=row.highest_write_id,
    )
