"""Which stripes are copied, and which are written anew together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_acid.merge.stitch.stripe_segments import (
    Segment,
    SurveyedStripe,
    cut_into_slices,
    plan_segments,
    slices_for,
)

SMALL_BYTES = 100

STRIPES = {"L": (500, 10, True), "s": (99, 10, True), "x": (500, 9, False), "t": (99, 9, False), "-": (500, 0, False)}
"""By letter: size, rows that stay, untouched or not. Large, small, touched, touched and small, without rows."""


@pytest.mark.parametrize(
    ("stripes", "segments"),
    [
        ("", []),
        ("LLL", ["copy LLL"]),
        ("LxL", ["copy L", "write x", "copy L"]),
        ("xxL", ["write xx", "copy L"]),
        ("---", []),
        ("L-L", ["copy LL"]),
        ("x-t", ["write xt"]),
        ("s", ["copy s"]),
        ("LsL", ["copy LsL"]),
        ("ssss", ["write ssss"]),
        ("LssL", ["copy L", "write ss", "copy L"]),
        ("sLs", ["copy sLs"]),
        ("s-s", ["write ss"]),
        ("Lsx", ["copy L", "write sx"]),
        ("sxsL", ["write sxs", "copy L"]),
        ("LstsLs", ["copy L", "write sts", "copy Ls"]),
    ],
)
def test_small_stripes_are_written_anew_where_one_comes_beside_another_or_a_touched_one(
    stripes: str, segments: list[str]
) -> None:
    assert planned(stripes, SMALL_BYTES) == segments


@pytest.mark.parametrize(
    ("stripes", "segments"),
    [("ssss", ["copy ssss"]), ("Lsx", ["copy Ls", "write x"]), ("s-s", ["copy ss"]), ("t", ["write t"])],
)
def test_without_a_limit_only_touched_stripes_are_written_anew(stripes: str, segments: list[str]) -> None:
    assert planned(stripes, 0) == segments


def test_every_stripe_with_rows_comes_once_and_in_order() -> None:
    stripes = surveyed("LssxL-tsLLs-xs")
    segments = plan_segments(stripes, SMALL_BYTES)
    assert [stripe for segment in segments for stripe in segment.stripes] == [
        stripe for stripe in stripes if stripe.rows_left
    ]


@pytest.mark.parametrize(
    ("stripes", "number", "cut", "slices"),
    [
        ("LLL", 2, ["copy LLL"], []),
        ("xL", 1, ["write x", "copy L"], [(0,)]),
        ("xxxx", 1, ["write xxxx"], [(0,)]),
        ("xxxx", 2, ["write xx", "write xx"], [(0,), (1,)]),
        ("xxxx", 3, ["write x", "write xx", "write x"], [(0,), (1,), (2,)]),
        ("xxx", 100, ["write x", "write x", "write x"], [(0,), (1,), (2,)]),
        ("tttttttttt", 2, ["write ttttt", "write ttttt"], [(0,), (1,)]),
        ("LxLxLxxL", 2, ["copy L", "write x", "copy L", "write x", "copy L", "write xx", "copy L"], [(1, 3), (5,)]),
        (
            "LxxxLxL",
            2,
            ["copy L", "write xx", "write x", "copy L", "write x", "copy L"],
            [(1,), (2, 4)],
        ),
        ("tLtLxLt", 2, ["write t", "copy L", "write t", "copy L", "write x", "copy L", "write t"], [(0, 2), (4, 6)]),
    ],
)
def test_what_is_written_anew_is_dealt_out_evenly_in_its_order(
    stripes: str, number: int, cut: list[str], slices: list[tuple[int, ...]]
) -> None:
    segments, found = cut_into_slices(plan_segments(surveyed(stripes), SMALL_BYTES), number)
    assert (told(stripes, segments), found) == (cut, tuple(slices))


@given(st.text("Lsxt-", max_size=30), st.integers(1, 12))
def test_every_stripe_is_written_by_one_slice_or_copied_and_no_slice_is_large(letters: str, number: int) -> None:
    planned_segments = plan_segments(surveyed(letters), SMALL_BYTES)
    segments, slices = cut_into_slices(planned_segments, number)
    stripes = [stripe for segment in planned_segments for stripe in segment.stripes]
    assert [stripe for segment in segments for stripe in segment.stripes] == stripes
    rewritten = [place for place, segment in enumerate(segments) if not segment.is_copied]
    assert [place for places in slices for place in places] == rewritten
    total = sum(segments[place].size_bytes for place in rewritten)
    for places in slices:
        assert sum(segments[place].size_bytes for place in places) <= total / number + 500


@pytest.mark.parametrize(
    ("megabytes", "slots", "slices"),
    [(129, 1, 2), (129, 2, 2), (327, 1, 3), (327, 2, 4), (327, 3, 3), (327, 8, 8), (327, 100, 10), (1281, 4, 12)],
)
def test_as_many_slices_as_keep_all_slots_at_work(megabytes: int, slots: int, slices: int) -> None:
    """Of 128 megabytes at most, and of a quarter of that at least."""
    assert slices_for(megabytes, 128, slots) == slices


def planned(letters: str, small_bytes: int) -> list[str]:
    return told(letters, plan_segments(surveyed(letters), small_bytes))


def told(letters: str, segments: Sequence[Segment]) -> list[str]:
    return [
        f"{'copy' if segment.is_copied else 'write'} {''.join(letters[stripe.stripe] for stripe in segment.stripes)}"
        for segment in segments
    ]


def surveyed(letters: str) -> list[SurveyedStripe]:
    return [_stripe(letter, number) for number, letter in enumerate(letters)]


def _stripe(letter: str, number: int) -> SurveyedStripe:
    size_bytes, rows_left, is_untouched = STRIPES[letter]
    first_key, last_key = (1, 1 << 29, 10 * number), (1, 1 << 29, 10 * number + 9)
    return SurveyedStripe(0, number, size_bytes, rows_left, first_key, last_key, is_untouched, 0)
