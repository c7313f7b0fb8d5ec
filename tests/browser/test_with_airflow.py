"""From a fresh connection to a compacted table, by Airflow's own forms, as somebody does who tries the provider.

The tests follow each other; what they see is shown in docs/first-steps.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.airflow_site import DATABASE, AirflowSite
from tests.browser.conftest import PageOf

Screenshot = Callable[[Page, str], None]

CONNECTION = "hive_acid_first"
DAG = "acid_compact_table"
TABLE = "acid_merge"


def fill_in(page: Page, *, connection: str | None = None, decide_only: bool = False, kind: str | None = None) -> None:
    """Fill the trigger form in, whose first section is open, and leave it open."""
    page.get_by_role("button", name="Trigger").first.click()
    form = page.get_by_role("dialog")
    form.locator("#element_database").fill(DATABASE)
    form.locator("#element_table").fill(TABLE)
    if connection is not None:
        form.locator("#element_hive_acid_conn_id").fill(connection)
    if decide_only:
        form.locator("label:has(input[name=element_decide_only])").click()
    if kind is not None:
        form.get_by_role("combobox").click()
        page.get_by_role("option", name=kind, exact=True).click()


def start(page: Page) -> str:
    """Send the form; the run's id, once its page is there."""
    page.get_by_role("dialog").get_by_role("button", name="Trigger").last.click()
    expect(page).to_have_url(re.compile("/runs/manual"))
    return page.url.rpartition("/runs/")[2].partition("/")[0]


def test_a_connection_is_made_by_a_form_that_says_what_it_needs(
    site: AirflowSite, page_of: PageOf, screenshot: Screenshot
) -> None:
    page = page_of("admin", "/connections", complains=True)
    page.get_by_role("button", name="Add Connection").click()
    form = page.get_by_role("dialog")
    form.locator("input[name=connection_id]").fill(CONNECTION)
    form.get_by_role("combobox").click()
    page.keyboard.type("Hive ACID")
    page.get_by_role("option", name="Hive ACID metastore").click()
    form.get_by_role("button", name="Extra Fields", exact=True).click()
    for label in ("Time-out (seconds)", "User", "Database connection", "Housekeeping elsewhere", "Storage"):
        expect(form.get_by_text(label, exact=True)).to_be_visible()
    form.get_by_role("button", name="Standard Fields").click()
    form.locator("input[name=host]").fill(site.server.host)
    form.locator("input[name=port]").fill(str(site.server.port))
    screenshot(page, "step-connection")
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_role("cell", name=CONNECTION)).to_be_visible()


def test_a_dry_run_is_started_by_a_form_and_its_log_shows_the_decisions(
    site: AirflowSite, page_of: PageOf, screenshot: Screenshot
) -> None:
    page = page_of("admin", f"/dags/{DAG}", complains=True)
    before = sorted(site.tables[TABLE].location.rglob("*"))
    fill_in(page, connection=CONNECTION, decide_only=True)
    screenshot(page, "step-trigger")
    run = start(page)
    site.wait_for_run(DAG, run)
    page.goto(f"/dags/{DAG}/runs/{run}/tasks/plan")
    expect(page.get_by_text("1 partition looked at")).to_be_visible()
    expect(page.get_by_text("delete deltas").first).to_be_visible()
    expect(page.get_by_text(f"{DATABASE}.{TABLE}").first).to_be_visible()
    screenshot(page, "step-decisions")
    assert sorted(site.tables[TABLE].location.rglob("*")) == before


def test_a_compaction_is_watched_in_the_grid_and_found_on_the_page_by_its_link(
    site: AirflowSite, page_of: PageOf, screenshot: Screenshot
) -> None:
    page = page_of("admin", f"/dags/{DAG}", complains=True)
    fill_in(page, kind="major")
    run = start(page)
    site.wait_for_run(DAG, run)
    page.goto(f"/dags/{DAG}/runs/{run}/tasks/compact/mapped/0")
    expect(page.get_by_role("heading", name=f"{DATABASE}.{TABLE}")).to_be_visible()
    expect(page.get_by_text(f"{DATABASE}.{TABLE}: compacted")).to_be_visible()
    screenshot(page, "step-log")
    page.get_by_role("link", name="Details").click()
    link = page.get_by_role("link", name="Hive ACID", exact=True).last
    expect(link).to_have_attribute("href", re.compile(f"/hive-acid/#/partition/{DATABASE}/{TABLE}$"))
    address = str(link.get_attribute("href"))
    page.goto(address)
    expect(page.get_by_text("succeeded").first).to_be_visible()
    expect(page.locator(".title-row")).to_contain_text("Healthy")
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    expect(page.get_by_text("No history")).to_have_count(0)
    screenshot(page, "step-result")
