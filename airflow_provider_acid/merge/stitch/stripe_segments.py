"""How an output is put together: which stripes are copied as bytes, and which are decoded and written anew.

Pure values, so that a big bucket can be cut between segments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from operator import itemgetter

from airflow_provider_acid.merge.keys.acid_keys import Key
from airflow_provider_acid.merge.orc.stripe_description import StripeDescription

_MOST_SLICES_OF_ONE = 4
"""A slice is cut into no more to give every slot something to do: each reads the bucket's deletes again."""


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


def slices_for(rewritten_bytes: int, slice_bytes: int, slots: int) -> int:
    """How many slices keep all slots at work, in turns of as many slices as slots.

    :param rewritten_bytes: of the stripes that are written anew.
    :param slice_bytes: 1 at least; about the most of a slice, and four times the least.
    :param slots: how many tasks run at a time.
    """
    least = -(-rewritten_bytes // slice_bytes)
    most = rewritten_bytes * _MOST_SLICES_OF_ONE // slice_bytes
    return max(min(-(-least // slots) * slots, most), least)


def cut_into_slices(
    segments: Sequence[Segment], slices: int
) -> tuple[tuple[Segment, ...], tuple[tuple[int, ...], ...]]:
    """Deal out what is written anew to so many tasks, about as much to each; a stripe stays whole.

    :param segments: of the whole output.
    :returns: the segments, cut where a slice ends, and of each slice the places of its segments in them.
    """
    cut: list[Segment] = []
    places: dict[int, list[int]] = {}
    numbers = iter(_slice_numbers(segments, slices))
    for segment in segments:
        if segment.is_copied:
            cut.append(segment)
            continue
        for number, run in groupby(zip(segment.stripes, numbers, strict=False), itemgetter(1)):
            places.setdefault(number, []).append(len(cut))
            cut.append(Segment(False, tuple(stripe for stripe, _ in run)))
    return tuple(cut), tuple(map(tuple, places.values()))


def _slice_numbers(segments: Sequence[Segment], slices: int) -> Iterator[int]:
    """Of every stripe that is written anew: it belongs to the slice in which its middle lies."""
    sizes = [stripe.size_bytes for segment in segments if not segment.is_copied for stripe in segment.stripes]
    total = sum(sizes)
    for size, end in zip(sizes, accumulate(sizes), strict=True):
        yield (2 * end - size) * slices // (2 * total)


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
