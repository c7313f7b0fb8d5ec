"""What a metastore answers to tests and the quickstart, as values."""

from __future__ import annotations

from dataclasses import dataclass

from hmsclient.genthrift.hive_metastore import ttypes

NO_OPEN_WRITE_ID = 2**63 - 1  # as Hive writes it into lists of valid write ids and transactions


@dataclass(frozen=True)
class WriteIds:
    """A table's write ids as ``get_valid_write_ids`` reports them.

    :param high_water_mark: highest write id given out.
    """

    high_water_mark: int
    open: frozenset[int]
    aborted: frozenset[int]


@dataclass(frozen=True)
class Transactions:
    """The transactions that are not committed, as ``get_open_txns_info`` reports them."""

    high_water_mark: int
    open: frozenset[int]
    aborted: frozenset[int]

    @classmethod
    def of(cls, answer: ttypes.GetOpenTxnsInfoResponse) -> Transactions:
        """What that call answered."""
        by_state: dict[int, set[int]] = {}
        for transaction in answer.open_txns:
            by_state.setdefault(transaction.state, set()).add(transaction.id)
        open, aborted = (
            frozenset(by_state.get(state, ())) for state in (ttypes.TxnState.OPEN, ttypes.TxnState.ABORTED)
        )
        return cls(answer.txn_high_water_mark, open, aborted)

    def as_valid_txn_list(self) -> str:
        """Hive's way to write it."""
        lists = (",".join(map(str, sorted(ids))) for ids in (self.open, self.aborted))
        return ":".join((str(self.high_water_mark), str(min(self.open, default=NO_OPEN_WRITE_ID)), *lists))


@dataclass(frozen=True)
class ShownCompaction:
    """A row of SHOW COMPACTIONS."""

    id: int
    table: str
    partition: str | None
    state: str
