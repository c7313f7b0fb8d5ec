"""Files of the health store, as the page reads them."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.exceptions import CorruptFileError
from airflow_provider_acid.health.arrow_form import SCHEMA, newest_rows
from airflow_provider_acid.health.history import HistoryRecord, RecordMaker, TaskPlace
from airflow_provider_acid.health.json_lines import from_lines, to_lines
from airflow_provider_acid.health.parquet_files import rows_in
from airflow_provider_acid.health.query import PartitionQuery, metastores_of, overview, page_of
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.fuzzing.subject import Subject

_ROWS = [
    {"metastore": "m", "database": "d", "table": "t", "partition": f"p={number}", "state": "due", "reason": "12 deltas",
     "deltas": 12, "delete_deltas": number, "delta_size_ratio": 0.5, "evaluated_ms": 1_700_000_000_000 + number,
     "directories": [{"path": "delta_1_1", "kind": "delta", "min_write_id": 1, "size_bytes": 7, "compacted": False}]}
    for number in range(20)
]  # fmt: skip


def figures() -> Sequence[bytes]:
    """Of all compressions that Parquet's library would take, the one that is used, and none."""
    found = []
    for compression in ("zstd", "none"):
        file = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(_ROWS, schema=SCHEMA), file, compression=compression)
        found.append(file.getvalue())
    return found


def read_figures(document: bytes) -> None:
    """Whatever rows there are can be shown."""
    logging.disable(logging.WARNING)
    rows = rows_in(io.BytesIO(document), "file")
    newest = newest_rows(rows)
    page_of(newest, PartitionQuery(search="t"))
    overview(newest, "m")
    metastores_of(newest)
    rows.to_pylist()
    if not rows.num_rows:
        raise CorruptFileError("file", "was passed over", "none")


def history() -> Sequence[bytes]:
    """Two compactions and a cleaning."""
    maker = RecordMaker("m", TaskPlace("dag", "run", "task", 1), 1_700_000_000_000, "token")
    entity = Entity("d", "t", "p=1")
    outcome = Outcome(entity, OutcomeState.COMPACTED, "12 deltas", 3, ("base_0000009_v7",), 100, 60, 9, 1.5)
    done = maker.of_outcomes([DuePartition(entity, CompactionType.MINOR, "asked")], [outcome, outcome])
    return [to_lines([*done, *maker.of_cleanings([Cleaning(entity, 4, CleaningState.KEPT, "stays", ("a",))])])]


def read_history(document: bytes) -> None:
    """What is read is written in the same form again."""
    logging.disable(logging.WARNING)
    records = from_lines(HistoryRecord, document, "file")
    assert from_lines(HistoryRecord, to_lines(records), "file") == records
    if len(records) < 3:
        raise CorruptFileError("file", "was passed over in part", "none")


FIGURES = Subject("health_figures", figures, read_figures)
HISTORY = Subject("health_history", history, read_history)
