"""How an output is put together: which stripes are copied as bytes, and which are decoded and written anew.

Pure values, so that a big bucket can be cut between segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from airflow_provider_acid.spark_jobs.acid_keys import Key
from airflow_provider_acid.spark_jobs.stripe_description import StripeDescription


@dataclass(frozen=True)
class SurveyedStripe:
    """What is known of a source's stripe before anything is written.

    :param source: number of its file among the bucket's files with rows.
    :param stripe: its number in the file.
    :param size_bytes: with its indexes and its footer.
    :param rows_left: rows that stay.
    :param first_key: of its first row.
    :param last_key: of its last row.
    :param is_untouched: whether its bytes may be copied: all of its rows stay, and nothing else speaks against it.
    :param statistics_bytes: of its statistics, which a copy takes along; 0 where it may not be copied.
    :param description: what its file says of it; None where it may not be copied.
    """

    source: int
    stripe: int
    size_bytes: int
    rows_left: int
    first_key: Key
    last_key: Key
    is_untouched: bool
    statistics_bytes: int
    description: StripeDescription | None = None


@dataclass(frozen=True)
class Segment:
    """Stripes that follow each other in the output's order, and have the same done to them.

    :param is_copied: whether they are copied as bytes; else their rows that stay are written anew, together.
    """

    is_copied: bool
    stripes: tuple[SurveyedStripe, ...]

    @property
    def size_bytes(self) -> int:
        """Of all its stripes as they are."""
        return sum(stripe.size_bytes for stripe in self.stripes)


def plan_segments(stripes: Sequence[SurveyedStripe], small_bytes: int) -> tuple[Segment, ...]:
    """Decide which stripes are copied.

    :param stripes: in the order of their keys.
    :param small_bytes: smaller ones are rewritten together with the touched and small ones beside them; alone between
        large ones they are copied.
    """
    left = [stripe for stripe in stripes if stripe.rows_left]
    return tuple(_merged(_copied_or_not(left, small_bytes)))


def cut_segments(segments: Iterable[Segment], slice_bytes: int) -> tuple[Segment, ...]:
    """Divide what is written anew, so that no piece has much more than a slice's bytes; a stripe stays whole.

    :param slice_bytes: 1 at least.
    """
    return tuple(
        piece for segment in segments for piece in ([segment] if segment.is_copied else _pieces(segment, slice_bytes))
    )


def _pieces(segment: Segment, slice_bytes: int) -> Iterator[Segment]:
    """Pieces of about the same size."""
    number = -(-segment.size_bytes // slice_bytes)
    ends = list(accumulate(stripe.size_bytes for stripe in segment.stripes))

    def piece_of(place: int) -> int:
        middle = ends[place] - segment.stripes[place].size_bytes / 2
        return int(middle * number / segment.size_bytes)

    for _, places in groupby(range(len(segment.stripes)), piece_of):
        yield Segment(False, tuple(segment.stripes[place] for place in places))


def gather_slices(segments: Sequence[Segment], slice_bytes: int) -> tuple[tuple[int, ...], ...]:
    """What one task each writes anew: places of segments that are not copied, in their order.

    :param segments: as :func:`cut_segments` left them.
    :param slice_bytes: a slice has more only where one segment has more.
    """
    slices: list[list[int]] = []
    gathered_bytes = 0
    for place, segment in enumerate(segments):
        if segment.is_copied:
            continue
        if not slices or gathered_bytes + segment.size_bytes > slice_bytes:
            slices.append([])
            gathered_bytes = 0
        slices[-1].append(place)
        gathered_bytes += segment.size_bytes
    return tuple(map(tuple, slices))


def _copied_or_not(stripes: Sequence[SurveyedStripe], small_bytes: int) -> Iterator[Segment]:
    def is_large(stripe: SurveyedStripe) -> bool:
        return stripe.is_untouched and stripe.size_bytes >= small_bytes

    for large, run in groupby(stripes, is_large):
        members = tuple(run)
        yield Segment(large or (len(members) == 1 and members[0].is_untouched), members)


def _merged(segments: Iterator[Segment]) -> Iterator[Segment]:
    """A small stripe that is copied belongs to what is copied beside it."""
    for is_copied, run in groupby(segments, lambda segment: segment.is_copied):
        yield Segment(is_copied, tuple(stripe for segment in run for stripe in segment.stripes))
