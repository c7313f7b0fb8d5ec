"""What keeps an application from its work is heard among what ``spark-submit`` prints."""

from __future__ import annotations

import io
import runpy
from pathlib import Path

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.hooks.spark import UNFIT, listening

JOB = Path(__file__).parents[3] / "spark_jobs" / "compact.py"

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
    heard: list[ConfigurationError] = []
    # Airflow's hook keeps the last twenty lines.
    lines = iter(["begins\n", printed, *["\tat org.apache.spark\n"] * 30])
    listening(SparkSubmitHook(), heard.append)._process_spark_submit_log(lines)
    told = [f"YARN takes no application into it ({reason})" for reason in reasons]
    assert [error.reason for error in heard] == told
    assert list(lines) == []


def test_the_pipe_is_closed_when_it_was_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://yarn")
    pipe = io.StringIO("begins\nends\n")
    listening(SparkSubmitHook(), lambda _: None)._process_spark_submit_log(iter(pipe))
    assert pipe.closed


@pytest.mark.parametrize(("queue", "named"), [("nightly", "nightly"), (None, "default")])
def test_the_error_names_the_queue(monkeypatch: pytest.MonkeyPatch, queue: str | None, named: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://yarn")
    (error,) = heard_in(monkeypatch, f"{FAILED}it is not a leaf queue", SparkSubmitHook(yarn_queue=queue))
    assert error.subject == f"queue {named} of the cluster"
    assert error.is_permanent


@pytest.mark.parametrize(
    "printed",
    [
        "JAVA_HOME is not set",
        "/opt/spark/bin/spark-class: line 96: /opt/java/bin/java: No such file or directory",
        "/opt/spark/bin/spark-class: 71: exec: /opt/java/bin/java: not found",
        "/opt/spark/bin/spark-class: line 96: /opt/java/bin/java: Permission denied",
    ],
)
def test_that_there_is_no_java_is_heard(monkeypatch: pytest.MonkeyPatch, printed: str) -> None:
    (error,) = heard_in(monkeypatch, printed)
    assert str(error).startswith(f"spark-submit: finds no Java ({printed}). Remedy: install the Java")


def test_the_applications_own_word_is_heard(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = runpy.run_path(str(JOB), run_name="not main")
    job["say_unfit"]("Python", 'cannot import "pyorc"', "install it")
    printed = capsys.readouterr().out
    assert printed.startswith(UNFIT)
    # Of a driver in a container, whose log Airflow repeats.
    (error,) = heard_in(monkeypatch, f"26/11/27 INFO {printed}")
    assert str(error) == 'Python: cannot import "pyorc". Remedy: install it.'


@pytest.mark.parametrize("rest", ["", "[]", "{}", '{"subject": "x"}', "nothing at all"])
def test_what_only_begins_like_it_is_passed_over(monkeypatch: pytest.MonkeyPatch, rest: str) -> None:
    assert heard_in(monkeypatch, UNFIT + rest) == []


def heard_in(
    monkeypatch: pytest.MonkeyPatch, line: str, hook: SparkSubmitHook | None = None
) -> list[ConfigurationError]:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://yarn")
    heard: list[ConfigurationError] = []
    listening(hook or SparkSubmitHook(), heard.append)._process_spark_submit_log(iter([line]))
    return heard
