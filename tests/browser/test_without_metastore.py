"""The page when its metastore has gone; the last of these tests, since it does not come back."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.airflow_site import AirflowSite
from tests.browser.conftest import PageOf

Screenshot = Callable[[Page, str], None]


def test_without_its_metastore_the_figures_stay_and_the_queue_says_why_it_is_missing(
    site: AirflowSite, page_of: PageOf, screenshot: Screenshot
) -> None:
    site.server.stop()
    page = page_of("viewer", "/hive-acid/", complains=True)
    expect(page.get_by_role("alert")).to_contain_text("The metastore cannot be asked")
    expect(page.locator("tbody tr").first).to_be_visible()
    screenshot(page, "no-metastore-light")
    page.goto(f"{site.address}/hive-acid/#/queue")
    expect(page.get_by_text("No answer")).to_be_visible()
