"""Rows of the health store's Parquet files: bounded, checked, and none where a file is not one of this release's.

Nothing depends on the figures, and one bad file must not take the others from the page or stop an evaluation.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_acid.exceptions import AcidError
from airflow_provider_acid.health.arrow_form import KEYS, SCHEMA
from airflow_provider_acid.storages.small_files import EXCHANGE_FILE_BYTES

log = logging.getLogger(__name__)

MAX_PLAIN_BYTES = 1024 * 1024 * 1024
"""Most bytes of a file's columns once decompressed; 100,000 partitions with their directories take a tenth."""

MAX_FOOTER_BYTES = 16 * 1024 * 1024
"""Most bytes of a file's footer, and of what it is decoded into, per entry of its Thrift."""

_MAX_ROWS = 10_000_000


def rows_in(
    file: BinaryIO, path: str, columns: Sequence[str] = SCHEMA.names, wanted: pc.Expression | None = None
) -> pa.Table:
    """A file's rows; none, and a warning that names it, where they cannot be read or are not of this release's form.

    :param path: of the file, for the warning.
    :param columns: some of :data:`~.arrow_form.SCHEMA`.
    :param wanted: which rows; None for all.
    :raises AcidError: the storage failed.
    """
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    try:
        return _rows(file, schema, wanted)
    except AcidError:
        raise
    except Exception as error:  # whatever a garbled file makes of the library
        log.warning("the health store's file %s is passed over: %s", path, error or type(error).__name__)
        return schema.empty_table()


def fault_in(file: BinaryIO) -> str | None:
    """Why :func:`rows_in` passes a file over, or its directories; None where it does not.

    :raises AcidError: the storage failed.
    """
    try:
        _rows(file, SCHEMA, None)
    except AcidError:
        raise
    except Exception as error:  # whatever a garbled file makes of the library
        return str(error) or type(error).__name__
    return None


def _rows(file: BinaryIO, schema: pa.Schema, wanted: pc.Expression | None) -> pa.Table:
    _check_size(file)
    rows = pq.read_table(file, columns=schema.names, filters=wanted).select(schema.names).cast(schema)
    rows.validate(full=True)
    _check_keys(rows)
    return rows


def _check_size(file: BinaryIO) -> None:
    size = file.seek(0, io.SEEK_END)
    if size > EXCHANGE_FILE_BYTES:
        raise ValueError(f"it has {size} bytes, {EXCHANGE_FILE_BYTES} at most are read")
    file.seek(max(size - 8, 0))
    footer_bytes = int.from_bytes(file.read(4), "little")
    if footer_bytes > MAX_FOOTER_BYTES:
        raise ValueError(f"its footer has {footer_bytes} bytes, {MAX_FOOTER_BYTES} at most are read")
    file.seek(0)
    metadata = pq.read_metadata(file)
    plain = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    if not 0 <= plain <= MAX_PLAIN_BYTES or not 0 <= metadata.num_rows <= _MAX_ROWS:
        raise ValueError(f"it has {metadata.num_rows} rows of {plain} bytes, {MAX_PLAIN_BYTES} at most are read")
    file.seek(0)


def _check_keys(rows: pa.Table) -> None:
    """Names and states are texts: whoever reads rows joins and counts by them."""
    for name in (*KEYS, "state", "reason"):
        if name in rows.column_names and rows[name].null_count:
            raise ValueError(f"it holds a row without {name}")
