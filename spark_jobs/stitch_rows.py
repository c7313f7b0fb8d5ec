"""A bucket's file of rows in which the stripes that lose no row are copied as bytes, and only the others decoded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from itertools import accumulate
from types import TracebackType

from airflow_provider_acid.acid.plan import SourceFile
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.spark_jobs.acid_keys import INSERT, Key
from airflow_provider_acid.spark_jobs.file_copy import changed_source
from airflow_provider_acid.spark_jobs.merged import Merged
from airflow_provider_acid.spark_jobs.orc_stripes import MAX_STATISTICS_BYTES
from airflow_provider_acid.spark_jobs.rows_output import RowsOutput, Way, Written
from airflow_provider_acid.spark_jobs.sealed_output import write_errors_named
from airflow_provider_acid.spark_jobs.source_files import SourceReader, open_source
from airflow_provider_acid.spark_jobs.stitched_file import StitchedFile
from airflow_provider_acid.spark_jobs.stripe_donors import Donor
from airflow_provider_acid.spark_jobs.stripe_segments import Segment, SurveyedStripe, plan_segments
from airflow_provider_acid.spark_jobs.stripe_survey import Survey, survey_stripes


@dataclass(frozen=True)
class Stitching:
    """What is copied, what is not, and the survey that says so."""

    survey: Survey
    segments: tuple[Segment, ...]


def stitching_of(output: RowsOutput) -> Stitching | None:
    """Decide what is copied; None where that is nothing.

    :raises CorruptFileError: a source is damaged, or its keys break a rule.
    :raises UnsupportedTableError: events of ACID version 1.
    """
    survey = survey_stripes(output.storage, output.bucket.rows, output.schema, output.options, output.key_filter())
    segments = plan_segments(survey.stripes, output.options.small_stripe_bytes)
    copied = [stripe for segment in segments if segment.is_copied for stripe in segment.stripes]
    if not copied or _statistics_bytes(survey, copied) > MAX_STATISTICS_BYTES:
        return None
    return Stitching(survey, segments)


def _statistics_bytes(survey: Survey, copied: Iterable[SurveyedStripe]) -> int:
    """What readers hold in memory before they read a row."""
    return sum(_donor(survey, stripe).sections.metadata.stripeStats[stripe.stripe].ByteSize() for stripe in copied)


def _donor(survey: Survey, stripe: SurveyedStripe) -> Donor:
    donor = survey.donors[stripe.source]
    assert donor is not None
    return donor


def stitch_rows(output: RowsOutput, stitching: Stitching, way: Way) -> Merged:
    """Write and verify the file.

    :param way: in which rows of stripes that are not copied are written.
    :raises CorruptFileError: a source is not the file that was surveyed.
    :raises NotExactError: a row cannot be written that way.
    :raises VerificationError: the written file does not hold what it must.
    """
    survey = stitching.survey
    with (
        output.storage.create(output.path) as file,
        write_errors_named(output.name),
        _OneOpenFile(output.storage, output.bucket.rows, survey) as sources,
    ):
        stitched = StitchedFile(output.name, file)
        writing = _Writing(output, survey, sources, stitched)
        last_keys: list[Key] = []
        for segment in stitching.segments:
            last_keys += writing.copy(segment) if segment.is_copied else writing.rewrite(segment, way)
        stitched.seal(output.schema, output.options, last_keys, INSERT, output.calendar)
    return output.verified(way, Written(tuple(last_keys), survey.rows_aborted, survey.rows_deleted, stitched.copied))


class _OneOpenFile(AbstractContextManager["_OneOpenFile"]):
    """The sources of a bucket, one of them open at a time."""

    def __init__(self, storage: Storage, sources: Sequence[SourceFile], survey: Survey) -> None:
        self._storage = storage
        self._sources = sources
        self._starts = [0, *accumulate(source.size_bytes for source in sources)]
        self._survey = survey
        self._open = ExitStack()
        self._number: int | None = None
        self._reader: SourceReader | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()

    def reader(self, number: int) -> SourceReader:
        """The file of this number, which is the one that was surveyed."""
        if number != self._number:
            self._open.close()
            self._number = number
            first_row_id, donor = self._survey.first_row_ids[number], self._survey.donors[number]
            source = open_source(self._storage, self._sources[number], first_row_id)
            self._reader = self._open.enter_context(source)
            if donor is not None and self._reader is not None:
                donor.check_unchanged(self._reader)
        assert self._reader is not None
        return self._reader

    def bytes_before(self, number: int) -> int:
        """Bytes of the files before this one."""
        return self._starts[number]


@dataclass(frozen=True)
class _Writing:
    output: RowsOutput
    survey: Survey
    sources: _OneOpenFile
    stitched: StitchedFile

    def copy(self, segment: Segment) -> tuple[Key, ...]:
        """Copy the stripes; their last keys."""
        for stripe in segment.stripes:
            self.stitched.copy(self.sources.reader(stripe.source), _donor(self.survey, stripe), stripe.stripe)
            self._tell(stripe)
        return tuple(stripe.last_key for stripe in segment.stripes)

    def rewrite(self, segment: Segment, way: Way) -> tuple[Key, ...]:
        """Write the rows that stay into new stripes; the last keys of those."""
        key_filter = self.output.key_filter()
        with self.stitched.part() as part:
            writer = self.output.writer(way, part)
            for stripe in segment.stripes:
                reader = self.sources.reader(stripe.source)
                batch = reader.read_stripe(stripe.stripe, writer.fields)
                kept = key_filter.apply(reader.name, batch)
                if batch.num_rows - kept.rows_aborted - kept.rows_deleted != stripe.rows_left:
                    raise changed_source(reader.name, "changed while it was being compacted")
                writer.write(reader, stripe.stripe, batch, kept.mask)
                self._tell(stripe)
            writer.close()
            return writer.keys.last_keys(part.stripe_rows())

    def _tell(self, stripe: SurveyedStripe) -> None:
        place = self.sources.reader(stripe.source).tail.stripes[stripe.stripe]
        self.output.progress(self.sources.bytes_before(stripe.source) + place.offset + place.size_bytes)
