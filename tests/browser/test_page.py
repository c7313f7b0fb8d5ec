"""The page "Hive ACID" as people use it, from the empty one to a compacted partition; the tests follow each other."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.health.arrow_form import table_of
from airflow_provider_acid.health.files import TableName, now_ms
from airflow_provider_acid.health.history import TaskPlace
from airflow_provider_acid.health.recording import record_history, record_report
from airflow_provider_acid.health.report import ReportedFinding
from airflow_provider_acid.health.store import MILLISECONDS_PER_DAY, HealthStore
from airflow_provider_acid.health.values import HealthState, PartitionHealth
from airflow_provider_acid.plan.plan import CompactionType
from tests.browser.airflow_site import DATABASE, AirflowSite
from tests.browser.conftest import PageOf
from tests.harness.thrift_admin import ThriftAdmin

Screenshot = Callable[[Page, str], None]

TABLE, WAITING_TABLE = "acid_part", "a_part"
MANY = 100_000
COMES_AFTER_WHAT_WAS_ASKED = "fetch('static/icon.svg').then(answer => answer.text())"
PAGES = ("/hive-acid/", "/hive-acid/static/main.js", "/hive-acid/api/overview", "/hive-acid/api/queue")


def address_of(site: AirflowSite, table: str = TABLE) -> str:
    partition = site.tables[table].partitions[0].replace("=", "%3D").replace("/", "%2F")
    return f"/hive-acid/#/partition/{DATABASE}/{table}/{partition}"


@contextmanager
def reader(site: AirflowSite) -> Iterator[int]:
    """Somebody reads the partition meanwhile; the transaction."""
    with ThriftAdmin(site.server.host, site.server.port) as admin:
        (transaction,) = admin.open_transactions()
        admin.lock_as_reader(transaction, DATABASE, TABLE, site.tables[TABLE].partitions[0])
        try:
            yield transaction
        finally:
            admin.commit(transaction)


def row_of(page: Page, site: AirflowSite, table: str = TABLE) -> Locator:
    """The line of a table's first partition, or of a table without, in the list."""
    partitions = site.tables[table].partitions
    return page.locator("tbody tr", has=page.locator(f"text={table}")).filter(
        has_text=partitions[0] if partitions else ""
    )


def cells(row: Locator) -> dict[str, str]:
    """What a line of the list says, by column."""
    columns = ("health", "deltas", "base", "to clean", "compact")
    return dict(zip(columns, (row.locator("td").nth(place).inner_text() for place in (1, 2, 5, 7, 9)), strict=True))


def refresh_until(page: Page, row: Locator, said: dict[str, str]) -> None:
    """Press Refresh until a line says this; the figures come a moment after what the metastore says."""
    for _ in range(30):
        if said.items() <= cells(row).items():
            break
        page.get_by_role("button", name="Refresh").click()
        page.wait_for_timeout(1000)
    assert cells(row) == {**cells(row), **said}


def refresh_until_seen(page: Page, text: str) -> None:
    """Press Refresh until new files of the health store are read, which is done every few seconds."""
    for _ in range(10):
        if page.get_by_text(text).count():
            break
        page.wait_for_timeout(2000)
        page.get_by_role("button", name="Refresh").click()


@pytest.mark.parametrize("path", PAGES)
def test_who_is_not_signed_in_sees_nothing(site: AirflowSite, path: str) -> None:
    assert site.status(path, None) == 401
    assert site.status(path, "no.such.token") in (401, 403)
    assert site.status(path, site.token("viewer")) == 200


def test_there_is_no_description_of_the_application_for_the_public(site: AirflowSite) -> None:
    for path in ("openapi.json", "docs", "redoc"):
        assert site.status(f"/hive-acid/{path}", None) in (401, 404)


def test_it_is_found_in_airflows_navigation_and_says_how_to_begin(
    site: AirflowSite, page_of: PageOf, screenshot: Screenshot
) -> None:
    page = page_of("admin", "/plugin/hive-acid", complains=True)
    expect(page.get_by_role("link", name="Hive ACID")).to_be_visible()
    frame = page.frame_locator("iframe")
    expect(frame.get_by_text("No partition is known yet")).to_be_visible()
    expect(frame.get_by_role("heading", name="Queue")).to_be_visible()
    screenshot(page, "empty-light")


def test_after_an_evaluation_every_partition_is_listed(
    site: AirflowSite, page_of: PageOf, screenshot: Screenshot
) -> None:
    site.look()
    page = page_of("viewer", "/hive-acid/")
    rows = page.locator("tbody tr")
    count = sum(max(len(table.partitions), 1) for table in site.tables.values())
    expect(rows).to_have_count(count)
    for table in site.tables.values():
        for partition in table.partitions:
            expect(rows.filter(has_text=f"{table.name}{partition}")).to_have_count(1)
    screenshot(page, "partitions-light")
    around = page_of("admin", "/plugin/hive-acid", dark=True, complains=True)
    expect(around.frame_locator("iframe").locator("tbody tr")).to_have_count(count)
    expect(around.frame_locator("iframe").get_by_text("Nothing failed")).to_be_visible()
    screenshot(around, "airflow-dark")


def test_it_is_sorted_searched_and_filtered_by_clicks(site: AirflowSite, page_of: PageOf) -> None:
    page = page_of("viewer", "/hive-acid/")
    rows = page.locator("tbody tr")
    deltas = page.locator("tbody td:nth-child(3)")
    expect(rows.first).to_be_visible()
    expect(page.get_by_role("columnheader", name="Deltas")).to_have_attribute("aria-sort", "descending")
    figures = [sum(map(int, text.split("+"))) for text in deltas.all_inner_texts()]
    assert figures == sorted(figures, reverse=True)
    page.locator("th a").filter(has_text=re.compile("^Deltas$")).click()
    expect(page.get_by_role("columnheader", name="Deltas")).to_have_attribute("aria-sort", "ascending")
    page.get_by_role("searchbox").press_sequentially("ACID_PART/")
    expect(rows).to_have_count(len(site.tables[TABLE].partitions))
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.get_by_role("searchbox").fill("no such table")
    expect(page.get_by_text("No partition matches")).to_be_visible()
    page.get_by_role("link", name="Show all partitions").click()
    page.get_by_role("button", name="Held back").click()
    expect(page).to_have_url(re.compile("state=held"))


def test_a_partition_shows_its_directories(site: AirflowSite, page_of: PageOf, screenshot: Screenshot) -> None:
    page = page_of("viewer", "/hive-acid/")
    name = site.tables[TABLE].partitions[0]
    page.get_by_role("link", name=name).click()
    expect(page).to_have_url(site.address + address_of(site))
    folders = [path.name for path in (site.tables[TABLE].location / name).iterdir() if path.name[0] not in "._"]
    for folder in folders:
        expect(page.get_by_role("cell", name=folder, exact=True)).to_be_visible()
    expect(page.locator("svg.timeline[role=img] rect")).to_have_count(len(folders))
    expect(page.get_by_text("No requests")).to_be_visible()
    screenshot(page, "partition-light")


def test_whoever_may_only_look_starts_nothing(site: AirflowSite, page_of: PageOf) -> None:
    page = page_of("viewer", address_of(site), complains=True)
    page.get_by_role("button", name="Compact…").click()
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("You have no right to start the DAG")).to_be_visible()
    runs = site.call("GET", "/api/v2/dags/acid_compact_table/dagRuns", site.token("admin"))
    assert runs["total_entries"] == 0


def test_the_button_compacts_the_partition_and_the_page_says_who_keeps_it_from_being_cleaned(
    site: AirflowSite, page_of: PageOf, screenshot: Screenshot
) -> None:
    the_list = page_of("viewer", "/hive-acid/")
    row = row_of(the_list, site)
    expect(row.get_by_role("button", name="Compact")).to_be_visible()
    before = cells(row)
    assert before["health"] in ("Minor due", "Major due")
    assert before["deltas"] != "0"
    with reader(site) as transaction:
        page = page_of("admin", address_of(site))
        page.get_by_role("button", name="Compact…").click()
        page.get_by_role("radio", name="Major").check()
        screenshot(page, "compact-light")
        page.get_by_role("button", name="Start").click()
        link = page.locator("dialog .message a")
        expect(link).to_be_visible()
        run_id = link.inner_text()
        run = site.call("GET", f"/api/v2/dags/acid_compact_table/dagRuns/{run_id}", site.token("admin"))
        assert run["conf"] == {
            "database": DATABASE,
            "table": TABLE,
            "partition": site.tables[TABLE].partitions[0],
            "type": "major",
            "decide_only": False,
            "hive_acid_conn_id": "hive_acid_default",
        }
        page.get_by_role("button", name="Close").click()
        blocker = page.get_by_role("cell", name=f"transaction {transaction}", exact=True)
        heads = set()
        for _ in range(360):
            page.get_by_role("button", name="Refresh").click()
            page.wait_for_timeout(500)
            heads.add(page.locator(".title-row").inner_text())
            if blocker.count():
                break
        expect(blocker).to_be_visible()
        # A run is queued, then running, for less than a look takes: which of the two is seen is chance.
        for state in ("run (queued|running)", "working"):
            assert any(re.search(state, head) for head in heads), heads
        in_work = [head for head in heads if re.search("run queued|run running|initiated|working", head)]
        assert not any("Compact" in head for head in in_work)
        expect(page.get_by_role("cell", name=re.compile(r"^lock \d+$"))).to_have_count(1)
        screenshot(page, "cleaning-light")
        refresh_until(the_list, row, {"health": "Healthy ready for cleaning", "deltas": "0", "compact": "Compact"})
        assert cells(row)["to clean"] != "–", "the merged deltas are still there"
        assert cells(row)["base"] != before["base"]
    site.wait_for_run("acid_compact_table", run_id)
    refresh_until(the_list, row, {"health": "Healthy", "deltas": "0", "to clean": "–", "compact": "Compact"})


def test_partitions_that_were_ticked_are_compacted_by_a_run_for_each_table(
    site: AirflowSite, page_of: PageOf, screenshot: Screenshot
) -> None:
    chosen = {TABLE: site.tables[TABLE].partitions[1:3], WAITING_TABLE: site.tables[WAITING_TABLE].partitions[:1]}
    names = [f"{DATABASE}.{table}/{name}" for table, partitions in chosen.items() for name in partitions]
    page = page_of("admin", "/hive-acid/")
    for name in names:
        page.get_by_label(f"Choose {name}").check()
    page.get_by_role("button", name="Refresh").click()
    page.wait_for_timeout(1000)
    expect(page.get_by_role("checkbox", checked=True)).to_have_count(len(names))
    page.get_by_role("button", name="Compact 3 chosen…").click()
    assert sorted(page.locator("dialog li").all_inner_texts()) == sorted(names)
    page.get_by_role("checkbox", name="Dry run").check()
    screenshot(page, "several-light")
    page.get_by_role("button", name="Start").click()
    links = page.locator("dialog .message a")
    expect(links).to_have_count(len(chosen))
    asked = {}
    for run_id in links.all_inner_texts():
        site.wait_for_run("acid_compact_table", run_id)
        conf = site.call("GET", f"/api/v2/dags/acid_compact_table/dagRuns/{run_id}", site.token("admin"))["conf"]
        asked[conf["table"]] = conf["partition"]
    assert asked == {table: "\n".join(partitions) for table, partitions in chosen.items()}
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_role("checkbox", checked=True)).to_have_count(0)
    expect(page.get_by_role("button", name="chosen…")).to_have_count(0)


def test_what_was_done_is_in_the_history_with_its_plots(
    site: AirflowSite, page_of: PageOf, screenshot: Screenshot
) -> None:
    page = page_of("viewer", "/hive-acid/#/history")
    expect(page.locator("tbody tr", has_text="compacted")).to_have_count(1)
    expect(page.locator("tbody tr", has_text="cleaned")).to_have_count(1)
    expect(page.locator("svg.plot[role=img]")).to_have_count(3)
    screenshot(page, "history-light")
    page = page_of("viewer", address_of(site), dark=True)
    expect(page.get_by_role("cell", name=re.compile("^base_"))).to_be_visible()
    expect(page.locator("tbody tr", has_text="compacted")).to_have_count(2)
    expect(page.locator("tbody tr", has_text="succeeded")).to_have_count(1)
    screenshot(page, "partition-dark")


def test_a_partition_for_which_a_request_waits_says_so_and_is_not_asked_for_again(
    site: AirflowSite, page_of: PageOf
) -> None:
    partition = site.tables[WAITING_TABLE].partitions[0]
    with ThriftAdmin(site.server.host, site.server.port) as admin:
        admin.request_compaction(DATABASE, WAITING_TABLE, partition)
    page = page_of("admin", "/hive-acid/")
    row = row_of(page, site, WAITING_TABLE)
    expect(row.get_by_text("initiated", exact=True)).to_be_visible()
    expect(row.get_by_role("button", name="Compact")).to_have_count(0)
    page.goto(site.address + address_of(site, WAITING_TABLE))
    expect(page.locator(".title-row").get_by_text("initiated", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Compact…")).to_have_count(0)


def test_what_the_doctor_found_last_is_a_tab(site: AirflowSite, page_of: PageOf) -> None:
    page = page_of("viewer", "/hive-acid/")
    page.get_by_role("link", name="Doctor").click()
    expect(page.get_by_text("The doctor has not looked")).to_be_visible()
    found = [ReportedFinding("run directory", "problem", "is <b>somebody's</b>", "nothing begins", "remove it")]
    found.append(ReportedFinding("clocks", "ok", "they agree", "", ""))
    record_report(f"file:{site.health}", "hive_acid_default", Storages(), found)
    page.get_by_role("button", name="Refresh").click()
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text(
        re.compile("problem.*run directory.*is <b>somebody's</b>.*nothing.*remove it", re.S)
    )
    expect(page.get_by_text("1 problem; looked")).to_be_visible()
    expect(page.locator("#said")).to_have_text("Doctor shown")


@pytest.mark.parametrize("dark", [False, True])
def test_it_is_as_light_or_dark_as_airflow_around_it(page_of: PageOf, dark: bool) -> None:
    page = page_of("viewer", "/plugin/hive-acid", dark=dark, complains=True)
    expected = "dark" if dark else "light"
    expect(page.frame_locator("iframe").locator("html")).to_have_attribute("data-theme", expected)
    around = page.locator("html")
    expect(around).to_have_class(re.compile(expected))
    around.evaluate("root => { root.classList.remove('light', 'dark'); root.classList.add(%r); }"
                    % ("light" if dark else "dark"))  # fmt: skip
    opposite = "light" if dark else "dark"
    expect(page.frame_locator("iframe").locator("html")).to_have_attribute("data-theme", opposite)


def test_a_hundred_thousand_partitions_are_turned_page_by_page(
    site: AirflowSite, page_of: PageOf, screenshot: Screenshot
) -> None:
    partitions = [
        PartitionHealth("big", Entity("web", "clicks", f"id={number:06d}"), HealthState.HEALTHY, "", deltas=number % 9,
                        evaluated_ms=now_ms())
        for number in range(MANY)
    ]  # fmt: skip
    file = io.BytesIO()
    pq.write_table(table_of(partitions), file, row_group_size=10_000)
    file.seek(0)
    HealthStore.at(f"file:{site.health}", Storages()).replace_table(TableName("big", "web", "clicks"), file, [])
    page = page_of("viewer", "/hive-acid/#/partitions?metastore=big&sort=partition&ascending=1", complains=True)
    refresh_until_seen(page, "of 100,000")
    expect(page.get_by_text("1–50 of 100,000")).to_be_visible()
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_text("51–100 of 100,000")).to_be_visible()
    expect(page.locator("tbody tr").first).to_contain_text("id=000050")
    page.get_by_role("link", name="Last", exact=True).click()
    expect(page.get_by_text("99,951–100,000 of 100,000")).to_be_visible()
    expect(page.locator("tbody tr").last).to_contain_text("id=099999")


def test_the_list_says_why_something_is_held_back_how_old_its_figures_are_and_what_failed(
    site: AirflowSite, page_of: PageOf
) -> None:
    entity, reason = Entity("web", "late", "id=1"), "the last 2 compactions of it failed"
    seen_ms = now_ms() - 3 * MILLISECONDS_PER_DAY
    held_back = PartitionHealth("late", entity, HealthState.HELD, reason, deltas=3, evaluated_ms=seen_ms)
    file = io.BytesIO()
    pq.write_table(table_of([held_back]), file)
    file.seek(0)
    location = f"file:{site.health}"
    HealthStore.at(location, Storages()).replace_table(TableName("late", "web", "late"), file, [])
    due, failed = DuePartition(entity, CompactionType.MAJOR, "x"), Outcome(entity, OutcomeState.FAILED, "no disk")
    record_history(location, "late", Storages(), TaskPlace(), lambda make: make.of_outcomes([due], [failed]))
    page = page_of("viewer", "/hive-acid/#/partitions?metastore=late", complains=True)
    refresh_until_seen(page, "no disk")
    failures = page.locator(".card", has=page.get_by_role("heading", name="Failures"))
    expect(failures).to_contain_text(re.compile("1 in the last day.*web.late/id=1 no disk", re.DOTALL))
    expect(page.locator("tbody tr")).to_contain_text(reason)
    expect(page.locator("#freshness")).to_have_text("Evaluated 3 days ago")
    expect(page.locator("#freshness")).to_have_class(re.compile(r"\bold\b"))
    expect(page.locator("#said")).to_have_text("Partitions shown")
    expect(page.locator("[aria-live]")).to_have_count(0)


def test_a_server_that_is_still_being_asked_is_not_asked_again(page_of: PageOf) -> None:
    page = page_of("viewer", "/hive-acid/static/icon.svg", complains=True)
    asked: list[Route] = []
    page.clock.install()
    page.route("**/api/overview*", lambda route: asked.append(route))
    with page.expect_request("**/api/overview*"):
        page.goto("/hive-acid/")
    page.clock.run_for(95_000)
    page.evaluate(COMES_AFTER_WHAT_WAS_ASKED)
    assert len(asked) == 1
    asked[0].continue_()
    expect(page.locator("#said")).to_have_text("Partitions shown")
    with page.expect_request("**/api/overview*"):
        page.clock.run_for(35_000)
    page.evaluate(COMES_AFTER_WHAT_WAS_ASKED)
    assert len(asked) == 2


def test_without_a_location_the_page_says_what_to_set(page_of: PageOf) -> None:
    page = page_of("viewer", "/hive-acid/static/icon.svg", complains=True)
    detail = '{"detail": {"code": "not_configured", "message": "not set"}}'
    page.route("**/api/overview*", lambda route: route.fulfill(status=409, body=detail))
    page.goto("/hive-acid/")
    expect(page.get_by_text("health_location = file:")).to_be_visible()
