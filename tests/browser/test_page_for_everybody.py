"""The page by keyboard, by screen reader, and on a phone; after the story that test_page.py tells."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable
from typing import cast

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, expect

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.health.arrow_form import table_of
from airflow_provider_acid.health.files import TableName, now_ms
from airflow_provider_acid.health.history import TaskPlace
from airflow_provider_acid.health.recording import record_history
from airflow_provider_acid.health.store import HealthStore
from airflow_provider_acid.health.values import HealthState, PartitionHealth
from airflow_provider_acid.plan.plan import CompactionType
from tests.browser.airflow_site import AirflowSite
from tests.browser.conftest import PageOf
from tests.harness.quickstart.work_folder import REPOSITORY

METASTORE = "hive_acid_default"
WIDTHS = (1440, 390)
VIEWS = ("partitions?search=web.orders", "tables", "queue", "history", "partition/web/orders/state%3Dheld")

Faults = Callable[[Page], list[str]]


@pytest.fixture(scope="module")
def faults() -> Faults:
    """What axe finds serious or critical on a page: the rule and the elements."""
    subprocess.run([REPOSITORY / "tools" / "setup-axe"], check=True)
    axe = (REPOSITORY / ".cache" / "axe.min.js").read_text()

    def find(page: Page) -> list[str]:
        page.evaluate(axe)
        found = page.evaluate("axe.run({ resultTypes: ['violations'] })")
        assert found["passes"], "axe looked at nothing"
        bad = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
        return [f"{each['id']}: {[cast(str, node['html']) for node in each['nodes']]}" for each in bad]

    return find


@pytest.fixture(scope="module", autouse=True)
def partitions_of_all_kinds(site: AirflowSite) -> None:
    """A partition in each state, one of which failed."""
    location = f"file:{site.health}"
    seen = [
        PartitionHealth(METASTORE, Entity("web", "orders", f"state={state.value}"), state, "2 deltas", deltas=2,
                        delete_deltas=1, delta_bytes=9000, delta_size_ratio=0.4, evaluated_ms=now_ms())
        for state in HealthState
    ]  # fmt: skip
    file = io.BytesIO()
    pq.write_table(table_of(seen), file)
    file.seek(0)
    HealthStore.at(location, Storages()).replace_table(TableName(METASTORE, "web", "orders"), file, [])
    entity = seen[0].entity
    due, failed = DuePartition(entity, CompactionType.MAJOR, "x"), Outcome(entity, OutcomeState.FAILED, "no disk")
    record_history(location, METASTORE, Storages(), TaskPlace(), lambda make: make.of_outcomes([due], [failed]))


def show(page: Page, site: AirflowSite, view: str) -> None:
    """Go to a view, until it shows what was written before this test."""
    page.goto(f"{site.address}/hive-acid/#/{view}")
    expect(page.locator(".loading")).to_have_count(0)
    for _ in range(10):
        if page.get_by_text("web.orders").count() or view == "queue":
            break
        page.wait_for_timeout(1000)
        page.get_by_role("button", name="Refresh").click()
        expect(page.locator(".loading")).to_have_count(0)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_serious(site: AirflowSite, page_of: PageOf, faults: Faults, dark: bool, width: int) -> None:
    page = page_of("admin", "/hive-acid/", dark=dark, width=width, complains=True)
    found = {}
    for view in VIEWS:
        show(page, site, view)
        expect(page.get_by_text("web.orders").or_(page.get_by_text("Waiting and in work")).first).to_be_visible()
        found[view] = faults(page)
    page.get_by_role("button", name="Compact…").click()
    found["dialog"] = faults(page)
    assert found == dict.fromkeys(found, [])


def test_axe_finds_a_planted_fault(site: AirflowSite, page_of: PageOf, faults: Faults) -> None:
    page = page_of("viewer", "/hive-acid/", complains=True)
    show(page, site, VIEWS[0])
    page.get_by_role("searchbox").evaluate(
        "box => ['aria-label', 'placeholder'].map(name => box.removeAttribute(name))"
    )
    page.locator("#freshness").evaluate("text => { text.style.color = '#ddd'; }")
    assert {fault.partition(":")[0] for fault in faults(page)} == {"label", "color-contrast"}


def test_compact_is_in_view_on_a_phone(site: AirflowSite, page_of: PageOf) -> None:
    page = page_of("viewer", "/hive-acid/", width=390, complains=True)
    show(page, site, VIEWS[0])
    buttons = page.get_by_role("button", name="Compact web.orders")
    expect(buttons).to_have_count(len(HealthState))
    for button in buttons.all():
        box = button.bounding_box()
        assert box is not None
        assert 0 <= box["x"] < box["x"] + box["width"] <= 390
        button.click(trial=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_table_leads_to_its_partitions(site: AirflowSite, page_of: PageOf) -> None:
    page = page_of("viewer", "/hive-acid/", complains=True)
    show(page, site, "tables")
    row = page.locator("tbody tr", has_text="web.orders")
    assert row.locator("td").all_inner_texts()[:6] == ["web.orders", "4", "2", "1", "12", "35.2 KiB"]
    row.get_by_role("link").click()
    expect(page.locator("tbody tr")).to_have_count(len(HealthState))
    expect(page.get_by_role("searchbox")).to_have_value("web.orders/")


def test_it_is_used_by_keyboard(site: AirflowSite, page_of: PageOf) -> None:
    page = page_of("admin", "/hive-acid/", complains=True)
    show(page, site, VIEWS[0])
    compact = page.get_by_role("button", name="Compact web.orders/state=healthy")
    expect(compact).to_be_visible()
    page.get_by_role("searchbox").focus()
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        focus = page.evaluate(
            "[document.activeElement.innerText, document.activeElement.getAttribute('aria-label'),"
            " getComputedStyle(document.activeElement).outlineStyle]"
        )
        reached.append(focus)
        if focus[1] == "Compact web.orders/state=healthy":
            break
    assert all(outline == "solid" for *_, outline in reached), reached
    assert {"Held back", "Health", "Deltas"} <= {text.strip() for text, *_ in reached}
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Compact")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(compact).to_be_focused()
