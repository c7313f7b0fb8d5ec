"""What this package knows about a row and Hive 3.1 has no column for: JSON in CQ_META_INFO, at most 2048 bytes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from airflow_provider_acid.acid.json_fields import decoded, read_as
from airflow_provider_acid.exceptions import ConfigurationError

NOTES_BYTES = 2048
"""Width of CQ_META_INFO on MySQL; PostgreSQL has no limit of its own."""

FORMAT = "airflow_provider_acid"
"""The key that tells our notes from what anybody else wrote there; its value is the format's number."""

FORMAT_NUMBER = 1
CUT = "…"


@dataclass(frozen=True)
class Published:
    """The moment in which a compaction's result became part of the table.

    :param next_txn_id: highest transaction id handed out by then; older ones may still read what was merged.
    :param newest_lock_id: highest id of a lock on the partition by then; 0 where there was none.
    :param at_ms: when that was, in milliseconds of the metastore's clock.
    """

    next_txn_id: int
    newest_lock_id: int
    at_ms: int


@dataclass(frozen=True)
class RowNotes:
    """The notes of one row; all empty for rows of others.

    :param pool: the request's pool.
    :param txn_id: the recorded transaction.
    :param message: why the row failed, was refused or given back.
    :param refused: whether an attempted row is a refused one, for which Hive 3.1 has no state.
    """

    pool: str | None = None
    txn_id: int | None = None
    published: Published | None = None
    message: str | None = None
    refused: bool = False

    @classmethod
    def parse(cls, stored: bytes | None) -> RowNotes:
        """The notes in a column; empty ones where it holds nothing, or nothing of ours."""
        try:
            data = decoded(stored or b"", "notes")
            if data.get(FORMAT) == FORMAT_NUMBER:
                return read_as(cls, {"refused": False, **data})
        except ConfigurationError:
            pass
        return cls()

    def stored(self) -> bytes:
        """The notes for the column; a message that is too long is cut."""
        whole = self._json()
        if len(whole) <= NOTES_BYTES or self.message is None:
            return whole
        fits, too_long = 0, len(self.message)
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            if len(self._cut(middle)) <= NOTES_BYTES:
                fits = middle
            else:
                too_long = middle
        return self._cut(fits)

    def _cut(self, length: int) -> bytes:
        return replace(self, message=(self.message or "")[:length] + CUT)._json()

    def _json(self) -> bytes:
        noted = {name: value for name, value in asdict(self).items() if value is not None and value is not False}
        data = {FORMAT: FORMAT_NUMBER, **noted}
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
