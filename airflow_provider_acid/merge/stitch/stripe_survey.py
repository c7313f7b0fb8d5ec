"""What a look at every key of a bucket says of its stripes, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.merge.files.source_files import KEY_FIELDS, SourceReader, open_in_order
from airflow_provider_acid.merge.keys.acid_keys import KeyRange, key_range_with
from airflow_provider_acid.merge.keys.key_filter import KeyFilter
from airflow_provider_acid.merge.orc.schema import OrcType
from airflow_provider_acid.merge.stitch.stripe_donors import Donor, KeyLimits, description_for_copy, donor_of
from airflow_provider_acid.merge.stitch.stripe_segments import SurveyedStripe
from airflow_provider_acid.plan.plan import CopiedStripes, OrcOptions, SourceFile


@dataclass(frozen=True)
class SurveyedFile:
    """What is known of a file with rows before anything is written.

    :param first_row_id: row number of its first row, where it has no ACID columns.
    :param tail_digest: SHA-256 of its tail; None where none of its stripes may be copied.
    """

    first_row_id: int
    tail_digest: bytes | None


@dataclass(frozen=True)
class Survey:
    """All stripes of a bucket's files with rows, in the order of their keys; it says the same in every task.

    :param files: in the bucket's order.
    """

    stripes: tuple[SurveyedStripe, ...]
    files: tuple[SurveyedFile, ...]
    rows_aborted: int
    rows_deleted: int


def survey_stripes(
    storage: Storage, sources: Sequence[SourceFile], schema: OrcType, options: OrcOptions, key_filter: KeyFilter
) -> Survey:
    """Read the keys of all rows, check them, and find the stripes that may be copied.

    :param schema: of the output.
    :param options: of the output.
    :param key_filter: of the bucket, not used before.
    :raises CorruptFileError: a source is damaged, or its keys break a rule.
    :raises UnsupportedTableError: events of ACID version 1.
    """
    stripes: list[SurveyedStripe] = []
    files: list[SurveyedFile] = []
    counts = _Counts()
    may_copy = options.stripe_copy is not CopiedStripes.NEVER
    with closing(open_in_order(storage, sources)) as opened:
        for number, (_, reader) in enumerate(opened):
            donor = donor_of(reader, schema, options) if reader and may_copy else None
            files.append(SurveyedFile(reader.first_row_id if reader else 0, donor.tail_digest if donor else None))
            for stripe in range(len(reader.tail.stripes) if reader else 0):
                assert reader is not None
                stripes += _look_at(reader, donor, key_filter, counts, (number, stripe))
    return Survey(tuple(stripes), tuple(files), counts.aborted, counts.deleted)


@dataclass
class _Counts:
    aborted: int = 0
    deleted: int = 0


def _look_at(
    reader: SourceReader, donor: Donor | None, key_filter: KeyFilter, counts: _Counts, place: tuple[int, int]
) -> list[SurveyedStripe]:
    """The stripe, or nothing where it has no row."""
    source, stripe = place
    found_keys: KeyRange | None = None
    limits: KeyLimits | None = None
    rows = rows_left = 0
    write = reader.one_write(stripe)
    if write is not None and key_filter.keeps_all(reader.name, write):
        found_keys, rows = write.keys, reader.tail.stripes[stripe].rows
        rows_left, limits = rows, KeyLimits.of_write(write, rows)
    for keys in reader.read_batches(stripe, KEY_FIELDS) if found_keys is None else ():
        kept = key_filter.apply(reader.name, keys)
        counts.aborted += kept.rows_aborted
        counts.deleted += kept.rows_deleted
        rows += keys.num_rows
        rows_left += keys.num_rows - kept.rows_aborted - kept.rows_deleted
        found_keys = key_range_with(found_keys, keys)
        if donor and rows == rows_left and keys.num_rows:
            limits = KeyLimits.of(keys, limits)
    if found_keys is None:
        return []
    description = None
    if donor and limits and rows == rows_left:
        description = description_for_copy(reader, donor, stripe, limits)
    found = SurveyedStripe(
        source=source,
        stripe=stripe,
        size_bytes=reader.tail.stripes[stripe].size_bytes,
        rows_left=rows_left,
        first_key=found_keys.first,
        last_key=found_keys.last,
        is_untouched=description is not None,
        statistics_bytes=donor.sections.metadata.stripeStats[stripe].ByteSize() if donor and description else 0,
        description=description,
    )
    return [found]
