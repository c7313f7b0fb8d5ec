"""A site whose every batch uploads all of Spark's jars is told so, once for each batch, and what to set."""

from __future__ import annotations

import logging

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from airflow_provider_acid.hooks.spark import listening
from tests.unit.test_documentation import section_of

UPLOADED = (
    "26/11/26 23:41:07 WARN Client: Neither spark.yarn.jars nor spark.yarn.archive is set, falling back to uploading "
    "libraries under SPARK_HOME.\n"
)


@pytest.mark.parametrize(("printed", "warnings"), [(UPLOADED, 1), ("begins again\n", 0)])
def test_jars_that_are_uploaded_are_a_warning_that_names_the_setting_and_the_page(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, printed: str, warnings: int
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://yarn")
    hook = SparkSubmitHook()
    # Airflow 3's own logger prints, of which pytest hears nothing.
    monkeypatch.setattr(hook, "_log", logging.getLogger("hook"))
    listening(hook, lambda _: None)._process_spark_submit_log(iter(["begins\n", printed, "ends\n"]))
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == warnings
    for message in told:
        assert "set spark.yarn.jars" in message
        assert "(docs/deploy.md, YARN)" in message
        assert "`spark.yarn.jars` is where" in section_of("docs/deploy.md", "YARN")
