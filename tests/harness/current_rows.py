"""The snapshot of this moment, and rows in a form that can be compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from tests.harness.acid_reader import Snapshot
from tests.harness.thrift_admin import ThriftAdmin
from tests.harness.thrift_answers import Transactions, WriteIds


def snapshot_of(write_ids: WriteIds, txns: Transactions, *, check_visibility: bool = True) -> Snapshot:
    """What a reader sees who asked for these."""
    return Snapshot(
        write_ids.high_water_mark,
        write_ids.open,
        write_ids.aborted,
        txns.open | txns.aborted,
        check_visibility=check_visibility,
    )


def snapshot_now(admin: ThriftAdmin, database: str, table: str, *, check_visibility: bool = True) -> Snapshot:
    """What a reader sees who asks now."""
    return snapshot_of(admin.write_ids(database, table), admin.transactions(), check_visibility=check_visibility)


def comparable(rows: Iterable[Mapping[str, object]]) -> list[str]:
    """Rows whatever file they are in, and in whatever order."""
    return sorted(map(row_text, rows))


def row_text(row: Mapping[str, object]) -> str:
    """A row without the file it lies in."""
    return json.dumps({name: value for name, value in row.items() if name != "file"}, sort_keys=True)
