"""How an output is written, in the words of ORC's writers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from airflow_provider_acid.merge.orc.schema import Kind, OrcType
from airflow_provider_acid.plan.plan import OrcOptions

# ORC's C++ writer, below both pyarrow and pyorc, fills its compression blocks from memory blocks of this size.
_MEMORY_BLOCK_BYTES = 65_536

FILTERED_KINDS = (Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.STRING)
"""Types whose hashes are the same in every implementation of ORC. Those of tinyint are not: the C++ library overwrites
the first values of a batch before it hashes them (ByteColumnWriter), and Hive 4 then skips rows that are there.
"""


def writable(options: OrcOptions) -> OrcOptions:
    """The options as ORC's C++ writer takes them: none of this changes what a reader sees.

    A table without row index gets one, because Trino fails on files that say their stride is 0.
    """
    blocks = -(-options.compression_block_bytes // _MEMORY_BLOCK_BYTES)
    return replace(
        options,
        compression_block_bytes=blocks * _MEMORY_BLOCK_BYTES,
        row_index_stride=options.row_index_stride or OrcOptions.row_index_stride,
    )


_CUT_KINDS = (Kind.STRING, Kind.VARCHAR, Kind.CHAR)


def cut_text_ids(schema: OrcType, columns: Collection[str]) -> frozenset[int]:
    """Column ids of the texts in some of the table's columns, by their names."""
    ids, column_id = set[int](), 7
    for name, child in zip(schema.children[5].names, schema.children[5].children, strict=True):
        for node in child.walk():
            if name in columns and node.kind in _CUT_KINDS:
                ids.add(column_id)
            column_id += 1
    return frozenset(ids)


def bloom_filter_ids(schema: OrcType, columns: tuple[str, ...]) -> set[int]:
    """Column ids of the wanted filters that can be written; a filter that is missing costs time only."""
    wanted, ids = {name.lower() for name in columns}, set()
    column_id = 7
    for name, child in zip(schema.children[5].names, schema.children[5].children, strict=True):
        if name.lower() in wanted and child.kind in FILTERED_KINDS:
            ids.add(column_id)
        column_id += sum(1 for _ in child.walk())
    return ids
