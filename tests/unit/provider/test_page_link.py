"""The button to the page "Hive ACID": only where Airflow has that page."""

from __future__ import annotations

import runpy

import airflow
import pytest

from airflow_provider_acid.links import compaction as links
from airflow_provider_acid.operators import cleaner, compaction


@pytest.mark.parametrize(("version", "has_page"), [("2.11.0", False), ("2.12.0rc1", False), ("3.1.0", True)])
def test_tasks_lead_to_the_page_where_airflow_has_it(
    monkeypatch: pytest.MonkeyPatch, version: str, has_page: bool
) -> None:
    monkeypatch.setattr(airflow, "__version__", version)
    monkeypatch.setattr(links, "PAGE_LINKS", runpy.run_path(links.__file__)["PAGE_LINKS"])
    cleans = runpy.run_path(cleaner.__file__)["AcidCleanerOperator"]
    compacts = runpy.run_path(compaction.__file__)["AcidCompactionOperator"]
    page = ["Hive ACID"] if has_page else []
    assert [link.name for link in cleans.operator_extra_links] == page
    assert [link.name for link in compacts.operator_extra_links] == ["Spark UI", *page]
