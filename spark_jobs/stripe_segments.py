"""How an output is put together: which stripes are copied as bytes, and which are decoded and written anew.

Pure values, so that a big bucket can be cut between segments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from airflow_provider_acid.spark_jobs.acid_keys import Key


@dataclass(frozen=True)
class SurveyedStripe:
    """What is known of a source's stripe before anything is written.

    :param source: number of its file among the bucket's files with rows.
    :param stripe: its number in the file.
    :param size_bytes: with its indexes and its footer.
    :param rows_left: rows that stay.
    :param last_key: of its last row.
    :param is_untouched: whether its bytes may be copied: all of its rows stay, and nothing else speaks against it.
    """

    source: int
    stripe: int
    size_bytes: int
    rows_left: int
    last_key: Key
    is_untouched: bool


@dataclass(frozen=True)
class Segment:
    """Stripes that follow each other in the output's order, and have the same done to them.

    :param is_copied: whether they are copied as bytes; else their rows that stay are written anew, together.
    """

    is_copied: bool
    stripes: tuple[SurveyedStripe, ...]


def plan_segments(stripes: Sequence[SurveyedStripe], small_bytes: int) -> tuple[Segment, ...]:
    """Decide which stripes are copied.

    :param stripes: in the order of their keys.
    :param small_bytes: smaller ones are rewritten together with the touched and small ones beside them; alone between
        large ones they are copied.
    """
    left = [stripe for stripe in stripes if stripe.rows_left]
    return tuple(_merged(_copied_or_not(left, small_bytes)))


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
