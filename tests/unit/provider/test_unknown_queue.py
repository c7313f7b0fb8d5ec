"""What YARN's schedulers say of queues into which they take no application, among what ``spark-submit`` prints."""

from __future__ import annotations

import io

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from airflow_provider_acid.hooks.spark import listening, unknown_queue

FAILED = "org.apache.hadoop.yarn.exceptions.YarnException: Failed to submit application_17_0001 to YARN : "
OF_YARN = "Application application_17_0001 submitted by user etl "


@pytest.mark.parametrize(
    ("printed", "reasons"),
    [
        (f"{FAILED}{OF_YARN}to unknown queue: nightly\n", [f"{OF_YARN}to unknown queue: nightly"]),
        (f"{FAILED}{OF_YARN}to ambiguous queue: a please\n", [f"{OF_YARN}to ambiguous queue: a please"]),
        (f"{FAILED}{OF_YARN}to non-leaf queue: root\n", [f"{OF_YARN}to non-leaf queue: root"]),
        (f"{FAILED}root.nightly is not a leaf queue\n", ["root.nightly is not a leaf queue"]),
        (
            f"{FAILED}Application rejected by queue placement policy\n",
            ["Application rejected by queue placement policy"],
        ),
        (f"{FAILED}Queue root.nightly is STOPPED. Cannot accept submission of application\n", []),
        (f"{OF_YARN}to unknown queue: nightly\n", []),
    ],
)
def test_a_queue_that_is_not_there_is_heard_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, printed: str, reasons: list[str]
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://yarn")
    heard: list[str] = []
    # Airflow's hook keeps the last twenty lines.
    lines = iter(["begins\n", printed, *["\tat org.apache.spark\n"] * 30])
    listening(SparkSubmitHook(), heard.append)._process_spark_submit_log(lines)
    assert heard == reasons
    assert list(lines) == []


def test_the_pipe_is_closed_when_it_was_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://yarn")
    pipe = io.StringIO("begins\nends\n")
    listening(SparkSubmitHook(), lambda _: None)._process_spark_submit_log(iter(pipe))
    assert pipe.closed


@pytest.mark.parametrize(("queue", "named"), [("nightly", "nightly"), (None, "default")])
def test_the_error_names_the_queue(queue: str | None, named: str) -> None:
    error = unknown_queue(queue, "it is gone")
    assert str(error).startswith(f"queue {named} of the cluster: YARN takes no application into it (it is gone). Remed")
    assert error.is_permanent
