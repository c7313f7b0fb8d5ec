"""Both sides of a run directory understand each other's file names, and no others."""

from __future__ import annotations

import pytest

from airflow_provider_acid.plan import exchange


@pytest.mark.parametrize("item", [0, 7, 9_999, 10_000])
@pytest.mark.parametrize(
    "kind",
    [
        exchange.PLAN,
        exchange.RESULT,
        exchange.progress_kind(12),
        exchange.bucket_kind(4095, 100),
    ],
)
def test_an_items_file_is_read_as_it_was_named(item: int, kind: str) -> None:
    assert exchange.parse_item_file(exchange.item_file(item, kind)) == (item, kind)


@pytest.mark.parametrize(
    "name",
    [
        "_0008.progress.1.ab12.partial",
        "0008.progress.x",
        "8.plan.json",
        "0008.plan.json.tmp",
        "batch.json",
        "0008",
        "0008.skip",
    ],
)
def test_any_other_name_is_no_items_file(name: str) -> None:
    assert exchange.parse_item_file(name) is None


def test_signs_of_life_and_bucket_reports_are_read_as_they_were_named() -> None:
    assert exchange.parse_alive_file(exchange.alive_file(17)) == 17
    assert exchange.parse_alive_file("_operator.alive.17.ab.partial") is None
    assert exchange.parse_bucket_kind(exchange.bucket_kind(3, 40)) == (3, 40)
    assert exchange.parse_bucket_kind(exchange.PLAN) is None


@pytest.mark.parametrize(
    ("last", "look", "news", "expected"),
    [
        (0.05, 0.0, True, 0.05),
        (0.4, 0.0, True, 0.05),
        (0.05, 0.0, False, 0.1),
        (0.4, 0.0, False, 0.8),
        (0.8, 0.0, False, 1.0),
        (0.05, 0.3, True, 0.3),
        (0.05, 7.0, True, 1.0),
        (0.0, 0.0, False, 0.05),
    ],
)
def test_looks_follow_each_other_soon_after_news_and_seldom_after_none(
    last: float, look: float, news: bool, expected: float
) -> None:
    assert exchange.pause_seconds(last, 1.0, look, news=news) == expected
