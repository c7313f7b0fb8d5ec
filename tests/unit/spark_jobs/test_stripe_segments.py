"""Which stripes are copied, and which are written anew together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from airflow_provider_acid.spark_jobs.stripe_segments import (
    Segment,
    SurveyedStripe,
    cut_segments,
    gather_slices,
    plan_segments,
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
    ("stripes", "slice_bytes", "pieces"),
    [
        ("LLL", 1, ["copy LLL"]),
        ("xxxx", 1000, ["write xx", "write xx"]),
        ("xxxx", 999, ["write x", "write xx", "write x"]),
        ("xxxx", 2000, ["write xxxx"]),
        ("xxx", 1, ["write x", "write x", "write x"]),
        ("tttttttttt", 500, ["write ttttt", "write ttttt"]),
        ("LxxLxL", 500, ["copy L", "write x", "write x", "copy L", "write x", "copy L"]),
    ],
)
def test_what_is_written_anew_is_cut_evenly(stripes: str, slice_bytes: int, pieces: list[str]) -> None:
    assert told(stripes, cut_segments(plan_segments(surveyed(stripes), SMALL_BYTES), slice_bytes)) == pieces


@pytest.mark.parametrize(
    ("stripes", "slice_bytes", "slices"),
    [
        ("LLL", 1, []),
        ("xL", 1, [(0,)]),
        ("LxLxLxL", 1000, [(1, 3), (5,)]),
        ("LxLxLxL", 499, [(1,), (3,), (5,)]),
        ("xxxxLx", 1000, [(0,), (1,), (3,)]),
        ("tLtLxLt", 599, [(0, 2), (4, 6)]),
    ],
)
def test_pieces_are_gathered_in_their_order_until_a_slice_is_full(
    stripes: str, slice_bytes: int, slices: list[tuple[int, ...]]
) -> None:
    segments = cut_segments(plan_segments(surveyed(stripes), SMALL_BYTES), slice_bytes)
    assert gather_slices(segments, slice_bytes) == tuple(slices)


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
