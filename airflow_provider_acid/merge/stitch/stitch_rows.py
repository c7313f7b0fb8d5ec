"""A bucket's file of rows in which the stripes that lose no row are copied as bytes, and only the others decoded."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pyarrow as pa

from airflow_provider_acid.merge.files.answers import Merged
from airflow_provider_acid.merge.files.file_copy import changed_source
from airflow_provider_acid.merge.files.orc_stripes import MAX_STATISTICS_BYTES
from airflow_provider_acid.merge.files.sealed_output import write_errors_named
from airflow_provider_acid.merge.files.source_files import SourceReader
from airflow_provider_acid.merge.keys.acid_keys import INSERT, Key
from airflow_provider_acid.merge.rows.arrow_rows import ArrowRows
from airflow_provider_acid.merge.rows.exact_rows import ExactRows
from airflow_provider_acid.merge.stitch.bucket_rows import RowsOutput, Way, Written
from airflow_provider_acid.merge.stitch.open_sources import OpenSources
from airflow_provider_acid.merge.stitch.read_back import CopiedStripe
from airflow_provider_acid.merge.stitch.stitched_file import StitchedFile
from airflow_provider_acid.merge.stitch.stripe_segments import Segment, SurveyedStripe, plan_segments
from airflow_provider_acid.merge.stitch.stripe_survey import Survey, survey_stripes

_Batch: TypeAlias = "tuple[SourceReader, int, pa.RecordBatch, pa.Array[Any] | None]"
"""Rows of a stripe, and which of them stay; see :meth:`~.arrow_rows.ArrowRows.write`."""


@dataclass(frozen=True)
class Stitching:
    """What is copied, what is not, and the survey that says so."""

    survey: Survey
    segments: tuple[Segment, ...]

    @property
    def copies_any(self) -> bool:
        """Whether any stripe is copied."""
        return any(segment.is_copied for segment in self.segments)

    @property
    def rewritten_bytes(self) -> int:
        """Of the stripes that are decoded."""
        return sum(segment.size_bytes for segment in self.segments if not segment.is_copied)


def stitching_of(output: RowsOutput) -> Stitching:
    """Decide what is copied.

    :raises CorruptFileError: a source is damaged, or its keys break a rule.
    :raises UnsupportedTableError: events of ACID version 1.
    """
    survey = survey_stripes(output.storage, output.bucket.rows, output.schema, output.options, output.key_filter())
    segments = plan_segments(survey.stripes, output.options.small_stripe_bytes)
    # Readers hold them in memory before they read a row.
    if _statistics_bytes(segments) > MAX_STATISTICS_BYTES:
        touched = [replace(stripe, is_untouched=False) for stripe in survey.stripes]
        segments = plan_segments(touched, output.options.small_stripe_bytes)
    return Stitching(survey, segments)


def _statistics_bytes(segments: Iterable[Segment]) -> int:
    return sum(stripe.statistics_bytes for segment in segments if segment.is_copied for stripe in segment.stripes)


def stitch_rows(output: RowsOutput, stitching: Stitching, way: Way) -> Merged:
    """Write and verify the file.

    :param way: in which rows of stripes that are not copied are written.
    :raises CorruptFileError: a source is not the file that was surveyed.
    :raises NotExactError: a row cannot be written that way.
    :raises VerificationError: the written file does not hold what it must.
    """
    survey = stitching.survey
    if not stitching.segments:
        return output.nothing_left(survey.rows_aborted, survey.rows_deleted)
    with writing_of(output, survey) as writing:
        last_keys: list[Key] = []
        for segment in stitching.segments:
            last_keys += writing.copy(segment) if segment.is_copied else writing.rewrite(segment, way)
        writing.stitched.seal(output.schema, output.options, last_keys, INSERT, output.calendar)
    written = Written(tuple(last_keys), survey.rows_aborted, survey.rows_deleted, writing.copied)
    return output.verified(way, written)


@contextmanager
def writing_of(output: RowsOutput, survey: Survey) -> Iterator[Writing]:
    """Create the file, and open the bucket's files with rows beside it; where the block fails the file is dropped.

    :raises StorageError: the file cannot be written.
    """
    sources = OpenSources(output.storage, output.bucket.rows, survey.files, output.schema, output.options)
    with output.storage.create(output.path) as file, write_errors_named(output.name), sources:
        takes_digests = output.storage.rules.is_remote
        yield Writing(output, sources, StitchedFile(output.name, file, takes_digests=takes_digests))


@dataclass(frozen=True)
class Writing:
    """A file that is put together of a bucket's stripes."""

    output: RowsOutput
    sources: OpenSources
    stitched: StitchedFile
    copied: dict[int, CopiedStripe] = field(default_factory=dict)
    """By their numbers in this file."""

    def copy(self, segment: Segment) -> tuple[Key, ...]:
        """Copy the stripes; their last keys.

        :raises CorruptFileError: a source is not the file that was surveyed.
        """
        for stripe in segment.stripes:
            self.copy_stripe(self.sources, stripe.source, stripe.stripe, stripe)
            self._tell(stripe)
        return tuple(stripe.last_key for stripe in segment.stripes)

    def copy_stripe(self, files: OpenSources, number: int, stripe: int, surveyed: SurveyedStripe | None) -> None:
        """Copy a stripe of one of the files.

        :param number: of the file.
        :param stripe: its number in the file.
        :param surveyed: what is known of its keys; None where they are to be read again.
        :raises CorruptFileError: the file is not the one it was.
        """
        place, reader = self.stitched.stripes, files.reader(number)
        digest = self.stitched.copy(reader, files.donor(number), stripe)
        self.copied[place] = CopiedStripe(files.path(number), reader.tail.stripes[stripe].offset, digest, surveyed)

    def rewrite(self, segment: Segment, way: Way) -> tuple[Key, ...]:
        """Write the rows that stay into new stripes; the last keys of those.

        :raises CorruptFileError: a source is not the file that was surveyed.
        :raises NotExactError: a row cannot be written that way.
        """
        last_keys: list[Key] = []
        with closing(self._batches(segment, way)) as batches:
            is_left = True
            while is_left:
                with self.stitched.part() as part:
                    writer = self.output.writer(way, part)
                    is_left = _fill(writer, batches)
                    writer.close()
                    last_keys += writer.keys.last_keys(part.stripe_rows())
        return tuple(last_keys)

    def _batches(self, segment: Segment, way: Way) -> Generator[_Batch]:
        key_filter = self.output.key_filter()
        for stripe in segment.stripes:
            reader = self.sources.reader(stripe.source)
            rows_left = 0
            for batch in reader.read_batches(stripe.stripe, way.fields):
                kept = key_filter.apply(reader.name, batch)
                rows_left += batch.num_rows - kept.rows_aborted - kept.rows_deleted
                yield reader, stripe.stripe, batch, kept.mask
            if rows_left != stripe.rows_left:
                raise changed_source(reader.name, "changed while it was being compacted")
            self._tell(stripe)

    def _tell(self, stripe: SurveyedStripe) -> None:
        place = self.sources.reader(stripe.source).tail.stripes[stripe.stripe]
        self.output.progress(self.sources.bytes_before(stripe.source) + place.offset + place.size_bytes)


def _fill(writer: ArrowRows | ExactRows, batches: Iterator[_Batch]) -> bool:
    """Write until the writer holds much; whether anything may be left then."""
    for batch in batches:
        writer.write(*batch)
        if writer.holds_much:
            return True
    return False
