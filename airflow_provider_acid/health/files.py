"""Names of the files below ``[hive_acid] health_location``.

``partitions/<metastore>/<database>.<table>/<time>-<token>.parquet``: a table's partitions; the newest file counts.
``renewed/<metastore>/<time>-<token>.parquet``: partitions of any tables, as one task left them; all files count, and of
each partition the newest row, in whatever file.
``history/<day>/<time>-<token>.jsonl``: what one task's compactions or cleanings came to; all files count.
``doctor/<metastore>/<time>-<token>.jsonl``: what the doctor found; the newest file counts.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timezone
from urllib.parse import quote, unquote

PARTITIONS = "partitions"
RENEWED = "renewed"
HISTORY = "history"
DOCTOR = "doctor"

KEPT_DAYS = 90
"""Days of history that are kept, and after which a table that nobody evaluates any more is forgotten."""

_TABLE_FILE = re.compile(rf"{PARTITIONS}/([^/]+)/([^/]+)\.([^/.]+)/(\d{{13}})-[0-9a-f]+\.parquet")
_RENEWED_FILE = re.compile(rf"{RENEWED}/([^/]+)/(\d{{13}})-[0-9a-f]+\.parquet")
_REPORT_FILE = re.compile(rf"{DOCTOR}/([^/]+)/(\d{{13}})-[0-9a-f]+\.jsonl")
_HISTORY_FILE = re.compile(rf"{HISTORY}/(\d{{4}}-\d\d-\d\d)/(\d{{13}})-[0-9a-f]+\.jsonl")


@dataclass(frozen=True, order=True)
class TableName:
    """A table of one metastore, which is named by the id of Airflow's connection to it."""

    metastore: str
    database: str
    table: str

    @property
    def folder(self) -> str:
        """Where its files lie."""
        names = f"{_quoted(self.database)}.{_quoted(self.table)}"
        return f"{PARTITIONS}/{_quoted(self.metastore)}/{names}"


@dataclass(frozen=True)
class TableFile:
    """A file with a table's partitions."""

    path: str
    table: TableName
    written_ms: int


@dataclass(frozen=True)
class RenewedFile:
    """A file with partitions of one metastore that were looked at again."""

    path: str
    metastore: str
    written_ms: int


@dataclass(frozen=True)
class ReportFile:
    """A file with what the doctor found at a metastore."""

    path: str
    metastore: str
    written_ms: int


@dataclass(frozen=True)
class HistoryFile:
    """A file with records of one day."""

    path: str
    day: date


def table_file(path: str) -> TableFile | None:
    """What a path names; None where it is no file of partitions."""
    match = _TABLE_FILE.fullmatch(path)
    if match is None:
        return None
    metastore, database, table, written_ms = match.groups()
    return TableFile(path, TableName(_plain(metastore), _plain(database), _plain(table)), int(written_ms))


def newest_files(paths: Iterable[str]) -> dict[TableName, TableFile]:
    """The file that counts of each table."""
    newest: dict[TableName, TableFile] = {}
    for file in filter(None, map(table_file, paths)):
        known = newest.get(file.table)
        if known is None or (known.written_ms, known.path) < (file.written_ms, file.path):
            newest[file.table] = file
    return newest


def renewed_file(path: str) -> RenewedFile | None:
    """What a path names; None where it is no file of partitions that were looked at again."""
    match = _RENEWED_FILE.fullmatch(path)
    return None if match is None else RenewedFile(path, _plain(match[1]), int(match[2]))


def report_files(paths: Iterable[str], metastore: str) -> list[ReportFile]:
    """Those of them that are reports on a metastore, oldest first."""
    matches = filter(None, map(_REPORT_FILE.fullmatch, paths))
    files = (ReportFile(match[0], _plain(match[1]), int(match[2])) for match in matches)
    return sorted(
        (file for file in files if file.metastore == metastore), key=lambda file: (file.written_ms, file.path)
    )


def history_file(path: str) -> HistoryFile | None:
    """What a path names; None where it is no file of history."""
    match = _HISTORY_FILE.fullmatch(path)
    if match is None:
        return None
    try:
        return HistoryFile(path, date.fromisoformat(match[1]))
    except ValueError:
        return None


def new_table_file(table: TableName) -> str:
    """A path for what is now known of a table."""
    return f"{table.folder}/{_unique(now_ms())}.parquet"


def new_renewed_file(metastore: str) -> str:
    """A path for partitions that were looked at again."""
    return f"{RENEWED}/{_quoted(metastore)}/{_unique(now_ms())}.parquet"


def new_report_file(metastore: str) -> str:
    """A path for what the doctor finds."""
    return f"{DOCTOR}/{_quoted(metastore)}/{_unique(now_ms())}.jsonl"


def new_history_file(day: date) -> str:
    """A path for records of a day."""
    return f"{HISTORY}/{day.isoformat()}/{_unique(now_ms())}.jsonl"


def day_of(time_ms: int) -> date:
    """The day in UTC."""
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc).date()


def now_ms() -> int:
    """The clock of this machine, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _unique(time_ms: int) -> str:
    return f"{time_ms:013d}-{uuid.uuid4().hex[:12]}"


def _quoted(name: str) -> str:
    """Without separators of paths and of the names themselves; ``+`` instead of ``%``, which storages may decode."""
    return quote(name, safe="").replace(".", "%2E").replace("%", "+")


def _plain(quoted: str) -> str:
    return unquote(quoted.replace("+", "%"))
