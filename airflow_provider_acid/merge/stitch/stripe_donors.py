"""Files of which stripes may be copied into an output, and what must be true of each of those stripes.

A stripe's inner offsets are relative to its start, so its bytes can move; what a reader takes from a file's tail must
then be true of it under the output's tail, too. Whatever is missing, odd or unknown here is decoded instead.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError, Message

from airflow_provider_acid.merge.files.file_copy import changed_source
from airflow_provider_acid.merge.files.misleading_limits import columns_that_mislead
from airflow_provider_acid.merge.files.source_files import KEY_FIELDS, SourceReader
from airflow_provider_acid.merge.keys.acid_keys import INSERT
from airflow_provider_acid.merge.keys.one_write import OneWrite
from airflow_provider_acid.merge.orc.bounds import MAGIC
from airflow_provider_acid.merge.orc.codec import CodecError
from airflow_provider_acid.merge.orc.output_options import bloom_filter_ids
from airflow_provider_acid.merge.orc.schema import OrcType
from airflow_provider_acid.merge.orc.sections import Sections
from airflow_provider_acid.merge.orc.stripe_description import StripeDescription, describe, packed_footer
from airflow_provider_acid.merge.orc.stripe_footers import BLOOM_FILTER_UTF8, bloom_filters
from airflow_provider_acid.merge.orc.tail import read_tail_section
from airflow_provider_acid.merge.orc.writers import OrcWriter
from airflow_provider_acid.plan.plan import OrcOptions

FILE_VERSION = (0, 12)
"""Of the ORC format; there is one other, of Hive 0.11."""

_PRESENT = 0
"""``Stream.Kind`` of the bits that say which values are not NULL."""


_ROW = 6
"""Column id of the row's struct; those before it are the root and the keys."""


@dataclass(frozen=True)
class Donor:
    """A file of which stripes may be copied.

    :param sections: its tail.
    :param tail_digest: SHA-256 of the tail's bytes.
    :param filtered: ids of the columns that have Bloom filters in what is written anew.
    """

    sections: Sections
    writer: OrcWriter
    tail_digest: bytes
    filtered: frozenset[int]


@dataclass(frozen=True)
class KeyLimits:
    """What statistics must say of the ids of a stripe's rows.

    :param limits: the lowest and the highest value of each of the five columns.
    """

    rows: int
    limits: tuple[tuple[int, int], ...]

    @classmethod
    def of_write(cls, write: OneWrite, rows: int) -> KeyLimits:
        """Of rows of one write."""
        write_id, bucket_property = ((value, value) for value in (write.write_id, write.bucket_property))
        row_ids = write.first_row_id, write.last_row_id
        return cls(rows, ((INSERT, INSERT), write_id, bucket_property, row_ids, write_id))

    @classmethod
    def of(cls, keys: pa.RecordBatch, before: KeyLimits | None) -> KeyLimits:
        """Of some rows, one at least, and those before them."""
        found = [pc.min_max(keys.column(name)) for name in KEY_FIELDS]
        limits = tuple((pair["min"].as_py(), pair["max"].as_py()) for pair in found)
        if before is None:
            return cls(keys.num_rows, limits)
        pairs = zip(before.limits, limits, strict=True)
        joined = tuple((min(one[0], other[0]), max(one[1], other[1])) for one, other in pairs)
        return cls(before.rows + keys.num_rows, joined)


def same_donor(reader: SourceReader, schema: OrcType, options: OrcOptions, tail_digest: bytes) -> Donor:
    """The file, opened again, of which stripes were found to be fit for a copy.

    :param schema: of the output.
    :param options: of the output.
    :param tail_digest: of the file that was looked at.
    :raises CorruptFileError: it is another file now.
    """
    donor = donor_of(reader, schema, options)
    if donor is None or donor.tail_digest != tail_digest:
        raise changed_source(reader.name, "changed while it was being compacted")
    return donor


def donor_of(reader: SourceReader, schema: OrcType, options: OrcOptions) -> Donor | None:
    """Look at a file's tail; None where none of its stripes may be copied.

    :param schema: of the output.
    :param options: of the output.
    """
    types = reader.tail.schema
    fits = (
        reader.has_ids
        and types.children[_ROW - 1].children == schema.children[_ROW - 1].children
        and reader.tail.compression.name.lower() == options.compression
        and reader.tail.row_index_stride == options.row_index_stride
    )
    if not fits:
        return None
    end = read_tail_section(reader.file, reader.file.seek(0, 2))
    sections = Sections.of(end)
    writer = OrcWriter.of(sections)
    is_known = _knows_all_of(sections.footer) and _knows_all_of(sections.postscript)
    if not (is_known and tuple(sections.postscript.version) == FILE_VERSION and writer.may_share(types)):
        return None
    if sections.footer.headerLength != len(MAGIC) or not _has_all_statistics(sections):
        return None
    filtered = frozenset(bloom_filter_ids(schema, options.bloom_filter_columns))
    return Donor(sections, writer, hashlib.sha256(end).digest(), filtered)


def description_for_copy(reader: SourceReader, donor: Donor, stripe: int, keys: KeyLimits) -> StripeDescription | None:
    """What a copy of a stripe has to look like; None where more than deleted and aborted rows speaks against one.

    :param keys: of all its rows.
    """
    footer = packed_footer(reader.file, donor.sections, stripe)
    statistics = donor.sections.metadata.stripeStats[stripe].colStats
    # Hive picks stripes by their limits only where there are no deltas (OrcInputFormat.SplitGenerator), and one NaN can
    # take away a whole stripe's, where its other row groups have theirs.
    if _has_whole_rows(donor, stripe, footer) and _fit(statistics, keys) and not columns_that_mislead(statistics):
        return describe(donor.sections, stripe, footer)
    return None


def _knows_all_of(message: Message) -> bool:
    """Whether the message, and all in it, has only fields that are declared here."""
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    return known.ByteSize() == message.ByteSize()


def _has_all_statistics(sections: Sections) -> bool:
    """Whether there are statistics of every stripe and column, and as many values in the stripes as in the file."""
    footer, stripes = sections.footer, sections.metadata.stripeStats
    of_parts = [footer.statistics, *(stripe.colStats for stripe in stripes)]
    if len(stripes) != len(footer.stripes) or any(len(columns) != len(footer.types) for columns in of_parts):
        return False
    if not all(column.HasField("numberOfValues") for columns in of_parts for column in columns):
        return False
    return all(
        whole.numberOfValues == sum(stripe.colStats[column].numberOfValues for stripe in stripes)
        for column, whole in enumerate(footer.statistics)
    )


def _has_whole_rows(donor: Donor, stripe: int, packed: bytes) -> bool:
    """Whether the stripe's footer holds nothing unknown, and says that no key and no row as a whole is NULL.

    And that it has the Bloom filters of all other stripes: ORC's Java reader goes on with those of the stripe before
    where one has none (``RecordReaderImpl.readRowIndex``), so that Hive 3 would not find what they do not hold.
    """
    place = donor.sections.footer.stripes[stripe]
    try:
        footer = donor.sections.unpack("StripeFooter", packed)
    except (CodecError, DecodeError, ValueError):
        return False
    return (
        _knows_all_of(footer)
        and len(footer.columns) == len(donor.sections.footer.types)
        and sum(stream.length for stream in footer.streams) == place.indexLength + place.dataLength
        and not any(stream.kind == _PRESENT and stream.column <= _ROW for stream in footer.streams)
        and bloom_filters(footer) == {(column, BLOOM_FILTER_UTF8) for column in donor.filtered}
    )


def _fit(statistics: Any, keys: KeyLimits) -> bool:
    """Whether counts and limits of the ACID columns are those of their values; readers choose by them."""
    if any(statistics[column].numberOfValues != keys.rows for column in range(_ROW + 1)):
        return False
    for column, limits in enumerate(keys.limits, 1):
        found = statistics[column].intStatistics
        if not (found.HasField("minimum") and found.HasField("maximum")) or statistics[column].hasNull:
            return False
        if (found.minimum, found.maximum) != limits:
            return False
    return True
