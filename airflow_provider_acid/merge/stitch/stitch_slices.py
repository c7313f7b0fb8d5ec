"""A bucket too large for one task: slices of what must be decoded are written apart, and their stripes joined.

Stripes that are copied are no part of a slice: the task that joins the parts copies them from where they lie.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from airflow_provider_acid.merge.files.answers import Merged, Part
from airflow_provider_acid.merge.keys.acid_keys import INSERT, Key
from airflow_provider_acid.merge.orc.tail import read_tail_section
from airflow_provider_acid.merge.rows.arrow_rows import ArrowRows
from airflow_provider_acid.merge.rows.merge_sources import Sources
from airflow_provider_acid.merge.stitch.bucket_rows import RowsOutput, Way, Written
from airflow_provider_acid.merge.stitch.open_sources import OpenSources
from airflow_provider_acid.merge.stitch.stitch_rows import Stitching, Writing, writing_of
from airflow_provider_acid.merge.stitch.stripe_segments import Segment, cut_into_slices, slices_for
from airflow_provider_acid.merge.stitch.stripe_survey import Survey, SurveyedFile
from airflow_provider_acid.plan.plan import SourceFile


@dataclass(frozen=True)
class SlicedRows:
    """What a look at a large bucket says to the tasks that write it.

    :param sources: what is known of all files together.
    :param slices: places in ``segments``; each is written by a task of its own.
    """

    sources: Sources
    survey: Survey
    segments: tuple[Segment, ...]
    slices: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, sources: Sources, stitching: Stitching, slice_bytes: int, slots: int) -> SlicedRows:
        """Cut what is decoded into slices; see :func:`~.stripe_segments.slices_for`."""
        number = slices_for(stitching.rewritten_bytes, slice_bytes, slots)
        return cls(sources, stitching.survey, *cut_into_slices(stitching.segments, number))

    def of_slice(self, number: int) -> tuple[Segment, ...]:
        """The segments of a slice."""
        return tuple(self.segments[place] for place in self.slices[number])

    def sources_of_slice(self, number: int) -> Sources:
        """What is known of a slice's rows, as if those that go were not there."""
        rows = sum(stripe.rows_left for segment in self.of_slice(number) for stripe in segment.stripes)
        return replace(self.sources, rows=rows, values=None)


def write_slice(output: RowsOutput, sliced: SlicedRows, number: int, way: Way) -> Part:
    """Write and verify a slice's part.

    :param output: the part; of its sources only those of the slice count.
    :raises CorruptFileError: a source is not the file that was surveyed.
    :raises NotExactError: a row cannot be written that way.
    :raises VerificationError: the written file does not hold what it must.
    """
    with writing_of(output, sliced.survey) as writing:
        last_keys = tuple(writing.rewrite(segment, way) for segment in sliced.of_slice(number))
        all_keys = tuple(chain.from_iterable(last_keys))
        writing.stitched.seal(output.schema, output.options, all_keys, INSERT, output.calendar)
    merged = output.verified(way, Written(all_keys, 0, 0))
    assert merged.attempt is not None
    size = merged.file.size_bytes
    with output.storage.open_input(merged.attempt) as written:
        digest = hashlib.sha256(read_tail_section(written, size)).digest()
    return Part(merged.attempt, size, digest, last_keys)


def join_parts(output: RowsOutput, sliced: SlicedRows, parts: Sequence[Part]) -> Merged:
    """Write and verify the bucket's file.

    :param parts: of all slices, in their order.
    :raises CorruptFileError: a source or a part is not the file it was.
    :raises VerificationError: the written file does not hold what it must.
    """
    survey = sliced.survey
    with writing_of(output, survey) as writing, _open_parts(output, parts) as written:
        from_parts = _PartStripes(writing, written, sliced, parts)
        last_keys: list[Key] = []
        for place, segment in enumerate(sliced.segments):
            last_keys += writing.copy(segment) if segment.is_copied else from_parts.copy(place)
        writing.stitched.seal(output.schema, output.options, last_keys, INSERT, output.calendar)
    # All of its stripes are copies, so no row is read back in any other way than by its keys.
    joined = Written(tuple(last_keys), survey.rows_aborted, survey.rows_deleted, writing.copied)
    return output.verified(ArrowRows, joined)


def _open_parts(output: RowsOutput, parts: Sequence[Part]) -> OpenSources:
    sources = [SourceFile(part.path, part.size_bytes) for part in parts]
    files = [SurveyedFile(0, part.tail_digest) for part in parts]
    return OpenSources(output.storage, sources, files, output.schema, output.options)


class _PartStripes:
    """The stripes of segments that were written apart."""

    def __init__(self, writing: Writing, parts: OpenSources, sliced: SlicedRows, written: Sequence[Part]) -> None:
        self._writing = writing
        self._parts = parts
        self._found: dict[int, tuple[int, int, tuple[Key, ...]]] = {}
        for number, (places, part) in enumerate(zip(sliced.slices, written, strict=True)):
            first = 0
            for place, last_keys in zip(places, part.last_keys, strict=True):
                self._found[place] = number, first, last_keys
                first += len(last_keys)

    def copy(self, place: int) -> tuple[Key, ...]:
        """Copy a segment's stripes; their last keys."""
        number, first, last_keys = self._found[place]
        for stripe in range(first, first + len(last_keys)):
            self._writing.copy_stripe(self._parts, number, stripe, None)
        return last_keys
