"""Which write ids and transactions somebody sees: Hive's snapshots, their three views and their text forms.

Rules: Hive's ``ValidReaderWriteIdList``, ``ValidCompactorWriteIdList``, ``ValidCleanerWriteIdList``,
``ValidReadTxnList`` and ``TxnUtils.createValidCompactWriteIdList``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from airflow_provider_acid.exceptions import ConfigurationError

LONG_MAX = 2**63 - 1
"""How the text forms write "nothing is open"."""

_RANGE_LIMIT = 10_000_000


class RangeResponse(Enum):
    """How much of a range of write ids has the quality asked for."""

    NONE = "none"
    SOME = "some"
    ALL = "all"


class WriteIdView(str, Enum):
    """Whose questions a :class:`ValidWriteIdList` answers."""

    READER = "reader"
    COMPACTOR = "compactor"
    CLEANER = "cleaner"


@dataclass(frozen=True)
class TableWriteIds:
    """The metastore's answer to ``get_valid_write_ids`` for one table, decoded.

    :param full_table_name: ``database.table``.
    :param high_water_mark: highest write id allocated as of the transaction list sent.
    :param open: write ids of transactions that are still open.
    :param aborted: write ids of aborted transactions.
    :param min_open: lowest open write id where the metastore says so.
    """

    full_table_name: str
    high_water_mark: int
    open: frozenset[int] = frozenset()
    aborted: frozenset[int] = frozenset()
    min_open: int | None = None


@dataclass(frozen=True)
class ValidWriteIdList:
    """A snapshot of one table; made by :func:`compactor_list` and :func:`cleaner_list`.

    :param full_table_name: ``database.table``; None where the text form says ``null``.
    :param high_water_mark: nothing above it is seen.
    :param open: open write ids, ascending; always empty for a compactor, whose high-water mark is below them.
    :param aborted: aborted write ids, ascending.
    :param min_open: lowest open write id; None where none is known.
    """

    full_table_name: str | None
    high_water_mark: int
    open: tuple[int, ...] = ()
    aborted: tuple[int, ...] = ()
    min_open: int | None = None
    view: WriteIdView = WriteIdView.READER

    def is_write_id_valid(self, write_id: int) -> bool:
        """Whether rows of this write id count."""
        return (
            write_id <= self.high_water_mark
            and not _contains(self.open, write_id)
            and not _contains(self.aborted, write_id)
        )

    def is_write_id_aborted(self, write_id: int) -> bool:
        """Whether the transaction of this write id is known to be aborted."""
        return _contains(self.aborted, write_id)

    def is_valid_base(self, write_id: int) -> bool:
        """Whether a *compacted* base of this write id may be used: nothing inside it may be open."""
        return write_id <= self.high_water_mark and (self.min_open is None or write_id < self.min_open)

    def is_range_valid(self, minimum: int, maximum: int) -> RangeResponse:
        """How many of the write ids from ``minimum`` to ``maximum`` count.

        A compactor and a cleaner leave a directory that reaches above the high-water mark out whole. A compactor
        takes aborted write ids as valid: their rows are dropped one by one.
        """
        if self.view is not WriteIdView.READER and maximum > self.high_water_mark:
            return RangeResponse.NONE
        if self.view is WriteIdView.COMPACTOR:
            return RangeResponse.ALL
        if minimum > self.high_water_mark:
            return RangeResponse.NONE
        last = min(maximum, self.high_water_mark)
        invalid = maximum - last + _count(self.open, minimum, last) + _count(self.aborted, minimum, last)
        return _response(maximum - minimum + 1 - invalid, minimum, maximum)

    def is_range_aborted(self, minimum: int, maximum: int) -> RangeResponse:
        """How many of the write ids from ``minimum`` to ``maximum`` are aborted."""
        if not self.aborted or minimum > self.high_water_mark:
            return RangeResponse.NONE
        return _response(_count(self.aborted, minimum, maximum), minimum, maximum)

    def __str__(self) -> str:
        """Hive's text form; plain ids, because Hive 3 knows no ranges."""
        name = self.full_table_name or "null"
        return f"{name}:{_text(self.high_water_mark, self.min_open, self.open, self.aborted)}"

    @classmethod
    def parse(cls, text: str, view: WriteIdView = WriteIdView.READER) -> ValidWriteIdList:
        """Read Hive's text form, with ids or with the ranges (``10-20``) that Hive 4 may write.

        :raises ConfigurationError: the text is malformed, or empty, which Hive would take as "all is valid".
        """
        name, _, rest = text.partition(":")
        high_water_mark, min_open, open_ids, aborted = _parse_text(rest, text)
        if view is WriteIdView.COMPACTOR and open_ids:
            raise ConfigurationError(
                f"write id list {text!r}", "names open write ids, which no compactor's list has", "use compactor_list"
            )
        return cls(None if name.lower() == "null" else name, high_water_mark, open_ids, aborted, min_open, view)


def compactor_list(write_ids: TableWriteIds) -> ValidWriteIdList:
    """What a compaction may merge: all below the lowest open write id; ``createValidCompactWriteIdList``."""
    high_water_mark = write_ids.high_water_mark
    if write_ids.open:
        high_water_mark = min(write_ids.open) - 1
    return ValidWriteIdList(
        write_ids.full_table_name,
        high_water_mark,
        (),
        tuple(sorted(write_id for write_id in write_ids.aborted if write_id <= high_water_mark)),
        min(write_ids.open) if write_ids.open and write_ids.aborted else None,
        WriteIdView.COMPACTOR,
    )


def cleaner_list(write_ids: TableWriteIds, high_water_mark: int) -> ValidWriteIdList:
    """What decides about deletion after a compaction whose highest write id was ``high_water_mark``.

    Aborted write ids above it are none of that compaction's business and are left out.
    """
    mark = min(write_ids.high_water_mark, high_water_mark)
    return ValidWriteIdList(
        write_ids.full_table_name,
        mark,
        tuple(sorted(write_ids.open)),
        tuple(sorted(write_id for write_id in write_ids.aborted if write_id <= mark)),
        _min_open(write_ids),
        WriteIdView.CLEANER,
    )


@dataclass(frozen=True)
class ValidTxnList:
    """Which transactions are seen as committed.

    :param high_water_mark: highest transaction id that counts.
    :param open: open transactions, ascending.
    :param aborted: aborted transactions, ascending.
    """

    high_water_mark: int
    open: tuple[int, ...] = ()
    aborted: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "open", tuple(sorted(self.open)))
        object.__setattr__(self, "aborted", tuple(sorted(self.aborted)))

    @property
    def min_open(self) -> int | None:
        """The lowest open transaction."""
        return self.open[0] if self.open else None

    def is_txn_valid(self, txn_id: int) -> bool:
        """Whether the transaction is committed, as far as this list sees."""
        return (
            txn_id <= self.high_water_mark and not _contains(self.open, txn_id) and not _contains(self.aborted, txn_id)
        )

    def is_txn_aborted(self, txn_id: int) -> bool:
        """Whether the transaction is known to be aborted."""
        return _contains(self.aborted, txn_id)

    def as_of(self, txn_id: int) -> ValidTxnList:
        """The list as transaction ``txn_id`` itself must send it: without itself and all that is later."""
        return ValidTxnList(
            min(txn_id, self.high_water_mark),
            tuple(txn for txn in self.open if txn < txn_id),
            tuple(txn for txn in self.aborted if txn < txn_id),
        )

    def __str__(self) -> str:
        """Hive's text form; plain ids, because Hive 3 knows no ranges."""
        return _text(self.high_water_mark, self.min_open, self.open, self.aborted)

    @classmethod
    def parse(cls, text: str) -> ValidTxnList:
        """Read Hive's text form, with ids or with Hive 4's ranges.

        :raises ConfigurationError: the text is malformed, or empty, which Hive would take as "all is valid".
        """
        high_water_mark, _, open_txns, aborted = _parse_text(text, text)
        return cls(high_water_mark, open_txns, aborted)


def cleaner_txns(min_open_txn: int, compaction_txn: int, aborted: Iterable[int]) -> ValidTxnList:
    """The compactions that everybody sees who may still read what one compaction replaced.

    None that is newer than that one: who began while a newer one ran does not see its result, and still needs what it
    merged. Those belong to the newer one's own cleaning.

    :param min_open_txn: the lowest open transaction of any type, or the next one where none is open.
    :param compaction_txn: the transaction of the compaction that is cleaned.
    :param aborted: aborted transactions; what they published nobody sees.
    """
    return ValidTxnList(min(min_open_txn - 1, compaction_txn), (), tuple(txn for txn in aborted if txn < min_open_txn))


def _min_open(write_ids: TableWriteIds) -> int | None:
    # Hive honours the metastore's value only beside at least one open or aborted write id.
    if not write_ids.open and not write_ids.aborted:
        return None
    known = [*write_ids.open, *([] if write_ids.min_open is None else [write_ids.min_open])]
    return min(known, default=None)


def _contains(ascending: tuple[int, ...], value: int) -> bool:
    if not ascending:
        return False
    index = bisect_left(ascending, value)
    return index < len(ascending) and ascending[index] == value


def _count(ascending: tuple[int, ...], minimum: int, maximum: int) -> int:
    if not ascending:
        return 0
    return max(0, bisect_right(ascending, maximum) - bisect_left(ascending, minimum))


def _response(count: int, minimum: int, maximum: int) -> RangeResponse:
    if count <= 0:
        return RangeResponse.NONE
    return RangeResponse.ALL if count == maximum - minimum + 1 else RangeResponse.SOME


def _text(high_water_mark: int, min_open: int | None, open_ids: tuple[int, ...], aborted: tuple[int, ...]) -> str:
    lowest = LONG_MAX if min_open is None else min_open
    return f"{high_water_mark}:{lowest}:{','.join(map(str, open_ids))}:{','.join(map(str, aborted))}"


def _parse_text(fields: str, text: str) -> tuple[int, int | None, tuple[int, ...], tuple[int, ...]]:
    parts = fields.split(":")
    if not 2 <= len(parts) <= 4:
        raise _malformed(text, "has not the fields high-water mark, lowest open, open, aborted")
    try:
        high_water_mark, lowest = int(parts[0]), int(parts[1])
        open_ids, aborted = (_parse_ids(part, text) for part in (parts[2:] + ["", ""])[:2])
    except ValueError as error:
        raise _malformed(text, "holds something that is not a number") from error
    return high_water_mark, None if lowest == LONG_MAX else lowest, open_ids, aborted


def _parse_ids(part: str, text: str) -> tuple[int, ...]:
    ids: set[int] = set()
    for item in part.split(",") if part else ():
        first, dash, last = item.partition("-")
        minimum = int(first)
        maximum = int(last) if dash else minimum
        if not 0 <= maximum - minimum <= _RANGE_LIMIT:
            raise _malformed(text, f"holds the range {item}")
        ids.update(range(minimum, maximum + 1))
    return tuple(sorted(ids))


def _malformed(text: str, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"write id or transaction list {text!r}", reason, "take the list from the metastore, unchanged"
    )
