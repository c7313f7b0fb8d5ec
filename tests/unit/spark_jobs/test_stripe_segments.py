"""Which stripes are copied, and which are written anew together."""

from __future__ import annotations

import pytest

from airflow_provider_acid.spark_jobs.stripe_segments import SurveyedStripe, plan_segments

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


def planned(letters: str, small_bytes: int) -> list[str]:
    return [
        f"{'copy' if segment.is_copied else 'write'} {''.join(letters[stripe.stripe] for stripe in segment.stripes)}"
        for segment in plan_segments(surveyed(letters), small_bytes)
    ]


def surveyed(letters: str) -> list[SurveyedStripe]:
    return [SurveyedStripe(0, number, *_figures(letter, number)) for number, letter in enumerate(letters)]


def _figures(letter: str, number: int) -> tuple[int, int, tuple[int, int, int], bool]:
    size_bytes, rows_left, is_untouched = STRIPES[letter]
    return size_bytes, rows_left, (1, 1 << 29, number), is_untouched
