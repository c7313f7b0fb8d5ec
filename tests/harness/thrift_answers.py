"""What a metastore answers to tests and the quickstart, as values."""

from __future__ import annotations

from dataclasses import dataclass

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
