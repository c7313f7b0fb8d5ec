"""Tails and stripe footers of ORC files, as a merge and a copy of stripes read them.

Only what describes a file is damaged here: nobody can tell a changed value from another one, for ORC has no checksums.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.orc as orc
import pyorc

from airflow_provider_acid.merge.files.orc_stripes import groups_that_fit, look_at, write_stripes
from airflow_provider_acid.merge.files.source_files import SourceReader
from airflow_provider_acid.merge.orc.schema import is_acid
from airflow_provider_acid.merge.orc.tail import read_tail
from airflow_provider_acid.merge.stitch.stripe_donors import donor_of
from airflow_provider_acid.plan.plan import OrcOptions, SyntheticIds
from tests.harness.fuzzing.subject import Subject
from tests.unit.merge.acid_files import orc_content
from tests.unit.merge.orc_tails import Tail

_TABLES = Path(__file__).parents[1] / "fixtures" / "hive-4.0.1" / "tables"
_OF_HIVE = (
    ("acid_types", "acid_types/delta_0000001_0000001_0000/bucket_00000_0"),
    ("acid_plain", "acid_plain/delete_delta_0000003_0000003_0000/bucket_00000_0"),
)
_IDS = SyntheticIds(1, 536_870_912)
_SCHEMA = "struct<a:bigint,b:string,c:array<int>,d:timestamp,e:decimal(9,2),f:double>"


@cache
def files() -> tuple[bytes, ...]:
    """Files of Hive and of ORC's C++ library, with all compressions and several stripes."""
    found = []
    for table, member in _OF_HIVE:
        with tarfile.open(_TABLES / f"{table}.tar.gz") as archive:
            opened = archive.extractfile(member)
            assert opened is not None
            found.append(opened.read())
    rows = [(number, f"text {number % 7}", [number] * 2, None, None, number / 4) for number in range(600)]
    for kind in ("NONE", "NONE", "ZLIB", "SNAPPY", "LZ4", "ZSTD"):
        compression = pyorc.CompressionKind[kind]
        found.append(orc_content(_SCHEMA, rows, compression=compression, stripe_size=1024, batch_size=100))
    return tuple(found)


def tails() -> Sequence[bytes]:
    """The number of a file, and its tail."""
    return [bytes([number]) + Tail(content).end for number, content in enumerate(files())]


def read_with_tail(document: bytes) -> None:
    """The file with this tail."""
    content = files()[document[0] % len(files())] if document else b""
    body = content[: -len(Tail(content).end)] if content else b""
    read_file(body + document[1:])


def stripe_footers() -> Sequence[bytes]:
    """The number of a file, and the footer of its first stripe, packed as in the file."""
    return [bytes([number]) + content[slice(*_first_footer(content))] for number, content in enumerate(files())]


def read_with_stripe_footer(document: bytes) -> None:
    """The file with this footer of its first stripe, which has become its only one."""
    content = files()[document[0] % len(files())] if document else files()[0]
    start, _ = _first_footer(content)
    tail = Tail(content)
    del tail.footer.stripes[1:], tail.metadata.stripeStats[1:]
    tail.footer.stripes[0].footerLength = len(document[1:])
    tail.footer.numberOfRows = tail.footer.stripes[0].numberOfRows
    tail.content = content[:start] + document[1:] + tail.end
    read_file(tail.sealed())


def _first_footer(content: bytes) -> tuple[int, int]:
    stripe = Tail(content).footer.stripes[0]
    start = stripe.offset + stripe.indexLength + stripe.dataLength
    return start, start + stripe.footerLength


def read_file(content: bytes) -> None:
    """Its rows are what Arrow says of the whole file, and a copy of its stripes is not larger than it."""
    ids = None if is_acid(read_tail(io.BytesIO(content), "file").schema) else _IDS
    reader = SourceReader("file", io.BytesIO(content), lambda: io.BytesIO(content), ids)
    stripes = range(len(reader.tail.stripes))
    reader.writer_time_zones()
    tables = [
        pa.Table.from_batches([_columns(batch, ids)]) for number in stripes for batch in reader.read_batches(number)
    ]
    if ids is None:
        donor_of(reader, reader.tail.schema, OrcOptions())
    _compare(tables, content)
    source = look_at("file", lambda: closing(io.BytesIO(content)))
    for group in groups_that_fit([source, source]):
        if len(group) > 1:
            sink = _Sink()
            write_stripes(group, cast(BinaryIO, sink))
            assert sink.bytes <= 4 * len(content) + 65_536, f"{sink.bytes} bytes were written of {len(content)}"


def _columns(batch: pa.RecordBatch, ids: SyntheticIds | None) -> pa.RecordBatch:
    if ids is None:
        return batch
    row: Any = batch.column("row")
    return pa.RecordBatch.from_arrays(row.flatten(), names=[f"c{place}" for place in range(row.type.num_fields)])


def _compare(tables: Sequence[pa.Table], content: bytes) -> None:
    try:
        whole = orc.ORCFile(pa.BufferReader(content)).read()
    except (pa.ArrowException, OSError):
        return
    assert sum(table.num_rows for table in tables) == whole.num_rows
    for place in range(whole.num_columns):
        found = [chunk for table in tables for chunk in table.column(place).chunks]
        assert pa.chunked_array(found, whole.column(place).type).equals(whole.column(place)), f"column {place}"


class _Sink(io.RawIOBase):
    bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.bytes += len(data)
        return len(data)


TAILS = Subject("orc_tails", tails, read_with_tail)
STRIPE_FOOTERS = Subject("orc_stripe_footers", stripe_footers, read_with_stripe_footer)
