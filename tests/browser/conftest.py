from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.airflow_site import AirflowSite
from tests.browser.running_airflow import RunningAirflow

SCREENSHOTS = Path(__file__).parents[2] / "docs" / "screenshots"
PATIENCE_MILLISECONDS = 60_000

PageOf = Callable[..., Page]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps the tests that share :func:`site` together; those of the first week have a site of their own."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            name = "first week" if item.path.stem == "test_first_week" else "site"
            item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowSite]:
    """One Airflow and one metastore for the whole run; the tests tell a story and follow each other."""
    with AirflowSite(tmp_path_factory.mktemp("airflow-site")) as site:
        yield site


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The machine's Chromium; ./run-tests browser installs one where there is none."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    assert program, f"none of {', '.join(names)} is installed"
    expect.set_options(timeout=PATIENCE_MILLISECONDS)
    with sync_playwright() as playwright:
        # The sandbox needs rights that containers seldom have; only pages of this machine are opened.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page_of(site: AirflowSite, browser: Browser) -> Iterator[PageOf]:
    """Opens an address as a user who has signed in; what a page says in its console fails the test."""
    yield from pages_of(site, browser)


def pages_of(site: RunningAirflow, browser: Browser) -> Iterator[PageOf]:
    """What :func:`page_of` gives for a site."""
    contexts = []
    complaints: list[str] = []

    def open_page(user: str, address: str, *, dark: bool = False, complains: bool = False, width: int = 1360) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 860}, color_scheme="dark" if dark else "light", base_url=site.address
        )
        contexts.append(context)
        context.add_cookies([{"name": "_token", "value": site.token(user), "url": site.address}])
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MILLISECONDS)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        if not complains:
            page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="session")
def screenshot() -> Callable[[Page, str], None]:
    """Keeps what a page looks like for the documents, where SCREENSHOTS is set; by name in docs/screenshots."""

    def keep(page: Page, name: str) -> None:
        if os.environ.get("SCREENSHOTS"):
            SCREENSHOTS.mkdir(exist_ok=True)
            page.screenshot(path=SCREENSHOTS / f"{name}.png", animations="disabled")

    return keep
