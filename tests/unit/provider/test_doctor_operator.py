"""The doctor's operator: settings arrive, the report is logged and returned, and what is bad enough fails at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.compaction.evaluate.initiator import Evaluation
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.doctor.diagnosis import Diagnosis
from airflow_provider_acid.doctor.finding import Finding, Severity
from airflow_provider_acid.doctor.report import MOST_KEPT, MOST_NAMED
from airflow_provider_acid.health.reader import HealthReader
from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.installed_dags.doctor import PARAMS, dag
from airflow_provider_acid.operators import doctor as operator_module
from airflow_provider_acid.operators.doctor import SPARK_CONNECTION, SPARK_SUBMIT, AcidDoctorOperator
from airflow_provider_acid.operators.executor_packages import MARK, ExecutorPackages
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.local import LocalStorage
from tests.unit.provider.stored_dags import stored_and_found

WELL = Finding("clocks", Severity.OK, "they agree")
WARNED = Finding("waiting locks", Severity.WARNING, "lock 7 waits", "others wait behind it", "look who holds it")
BROKEN = Finding("metastore answers", Severity.PROBLEM, "ms:9083: refused", "nothing works", "start it")


class Site:
    """What a diagnosis of which nobody looked at anything found, and was told."""

    def __init__(self) -> None:
        self.findings: list[Finding] = [WELL]
        self.told: dict[str, Any] = {}

    def diagnose(
        self,
        endpoint: MetastoreEndpoint,
        selection: TableSelection,
        settings: CompactionSettings,
        *,
        health_location: str | None,
        try_storage: bool,
    ) -> Diagnosis:
        self.told = {"selection": selection, "settings": settings, "health_location": health_location}
        assert try_storage
        return Diagnosis(tuple(self.findings), Evaluation())


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """With a Spark that can be started."""
    found = Site()
    monkeypatch.setattr(operator_module, "diagnose", found.diagnose)
    extra = {"storage": {"hdfs": {"web_addresses": ["namenode:9870"]}}}
    metastore = {"conn_type": "hive_acid", "host": "not.asked", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps(metastore))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "spark-submit").write_text("#!/bin/sh\n")
    (tmp_path / "spark-submit").chmod(0o755)
    return found


def look(**parameters: Any) -> dict[str, Any]:
    return AcidDoctorOperator(task_id="look", **parameters).execute({})


def test_a_well_site_has_a_small_result_and_a_log_with_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert look() == {
        **{"worst": "ok", "problems": [], "problem_count": 0, "warnings": [], "warning_count": 0},
        **{"partitions": 0, "due": 0},
    }
    log = capsys.readouterr().out
    for name in (WELL.check, SPARK_CONNECTION, SPARK_SUBMIT, "local[1]"):
        assert name in log
    assert "\x1b[38" not in log


def test_what_is_configured_is_what_is_looked_at(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "TABLES": "sales.*",
        "EXCLUDE": "sales.tmp_*",
        "HEALTH_LOCATION": "hdfs://n/health",
        "DELTA_NUM_THRESHOLD": "7",
        "CANDIDATES": "written",
    }.items():
        monkeypatch.setenv(f"AIRFLOW__HIVE_ACID__{name}", value)
    look()
    settings = site.told["settings"]
    assert site.told["selection"] == TableSelection.of(["sales.*"], ["sales.tmp_*"])
    assert site.told["health_location"] == "hdfs://n/health"
    assert (settings.thresholds.delta_num_threshold, settings.candidates) == (7, Candidates.ALL)
    assert settings.storages.of(HdfsOptions).web_addresses == ("namenode:9870",)
    look(tables="web.*", exclude=[])
    assert site.told["selection"] == TableSelection.of(["web.*"])


@pytest.mark.parametrize("emptied", [None, [], ""])
def test_an_emptied_field_of_the_form_leaves_no_table_out(
    site: Site, monkeypatch: pytest.MonkeyPatch, emptied: object
) -> None:
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__EXCLUDE", "sales.configured")
    task: Any = AcidDoctorOperator(task_id="look", tables=["sales.*"], exclude="{{ params.exclude }}", spark_conn_id="")
    task.exclude = emptied
    task.execute({})
    assert site.told["selection"] == TableSelection.of(["sales.*"])


@pytest.mark.parametrize(
    ("fail_on", "findings", "fails"),
    [
        ("problem", [WELL, WARNED], False),
        ("problem", [WARNED, BROKEN], True),
        ("warning", [WELL], False),
        ("warning", [WELL, WARNED], True),
        ("never", [BROKEN], False),
    ],
)
def test_what_is_as_bad_as_that_fails_the_task_at_once(
    site: Site, fail_on: str, findings: list[Finding], fails: bool
) -> None:
    site.findings = findings
    if not fails:
        assert look(fail_on=fail_on)["warning_count"] == findings.count(WARNED)
        return
    with pytest.raises(AirflowFailException) as failure:
        look(fail_on=fail_on)
    worst = findings[-1]
    assert f"{worst.check}: {worst.seen}. Remedy: {worst.remedy}." in str(failure.value)
    assert ("waiting locks" in str(failure.value)) == (fail_on == "warning")


def test_what_was_found_is_kept_for_the_page_also_where_the_task_fails(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__HEALTH_LOCATION", str(tmp_path / "health"))
    site.findings = [WELL, BROKEN]
    with pytest.raises(AirflowFailException):
        look()
    report = HealthReader(lambda: LocalStorage(str(tmp_path / "health"))).report("hive_acid_default")
    assert report is not None
    assert [finding.check for finding in report.findings] == [BROKEN.check, WELL.check, SPARK_CONNECTION, SPARK_SUBMIT]
    assert report.findings[0].remedy == BROKEN.remedy


def test_the_message_of_many_problems_and_the_result_of_many_warnings_are_short(site: Site) -> None:
    site.findings = [Finding("odd", Severity.PROBLEM, f"{number} " + "x" * 9_000) for number in range(30)]
    with pytest.raises(AirflowFailException) as failure:
        look()
    lines = str(failure.value).splitlines()
    assert lines[0] == "The doctor found 30 problems:"
    assert lines[-1] == f"And {30 - MOST_NAMED} more, see the log."
    assert len(lines) == MOST_NAMED + 2
    result = look(fail_on="never")
    assert (result["problem_count"], len(result["problems"])) == (30, MOST_KEPT)
    assert len(json.dumps(result)) < 48 * 1024


@pytest.mark.parametrize(
    ("connection", "program", "check", "reason"),
    [
        ({"host": "local[1]"}, None, SPARK_SUBMIT, "is not on the PATH"),
        ({"host": "local[1]", "extra": {"spark-home": "/opt"}}, "spark-submit", SPARK_CONNECTION, "cannot be used"),
        (
            {"host": "spark://a", "extra": {"deploy-mode": "cluster"}},
            "spark-submit",
            SPARK_CONNECTION,
            "not possible",
        ),
    ],
)
def test_a_spark_that_cannot_be_started_is_a_problem(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    connection: dict[str, Any],
    program: str | None,
    check: str,
    reason: str,
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", **connection}))
    if program is None:
        (tmp_path / "spark-submit").unlink()
    with pytest.raises(AirflowFailException, match=f"1 problem:\n{check}: .*{reason}.*Remedy: "):
        look()
    assert look(spark_conn_id="")["problem_count"] == 0


KIND = {"protobuf": "6.31.1", "pyarrow": "21.0.0", "pyorc": "0.10.0", "python": "3.11.9"}


@pytest.mark.parametrize(
    ("kinds", "severities", "words"),
    [
        ([KIND], [Severity.OK], "pyarrow 21.0.0"),
        ([{**KIND, "pyorc": ""}], [Severity.PROBLEM], "pip install 'pyorc>=0.9' for the Python of the executors"),
        ([{**KIND, "pyarrow": "9.0.0"}], [Severity.PROBLEM], "pip install 'pyarrow>=19'"),
        ([KIND, {**KIND, "python": "3.12.1"}], [Severity.OK, Severity.OK, Severity.WARNING], "2 different sets"),
        (None, [Severity.NOTE], "deploy mode cluster"),
    ],
)
def test_what_executors_have_is_told_where_that_is_asked_for(
    tmp_path: Path, kinds: list[dict[str, str]] | None, severities: list[Severity], words: str
) -> None:
    line = "nothing" if kinds is None else MARK + json.dumps(kinds)
    (tmp_path / "spark-submit").write_text(f"#!/bin/sh\necho '{line}'\n")
    hook = SparkSubmitHook(conn_id="spark_default")
    found = list(ExecutorPackages(hook).findings())
    assert [finding.severity for finding in found] == severities
    assert words in str(found)


def test_the_application_is_submitted_by_what_is_configured_for_compactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_OF_THE_SITE", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__SPARK_CONN_ID", "spark_of_the_site")
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__SPARK_CONF", '{"spark.pyspark.python": "/opt/python"}')
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__EXECUTOR_MEMORY", "3g")
    (tmp_path / "spark-submit").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path / "arguments"}\n')
    look(executors=True)
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert {"local[2]", "spark.pyspark.python=/opt/python", "3g"} <= {*arguments}


def test_an_application_that_fails_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "spark-submit").write_text("#!/bin/sh\nexit 3\n")
    assert look()["worst"] == "ok"
    with pytest.raises(AirflowFailException, match="executors' packages: a Spark application of one second failed"):
        look(executors="true")


@pytest.mark.parametrize("parameters", [{"executors": "perhaps"}, {"fail_on": "error"}, {"tables": ["orders"]}])
def test_a_parameter_that_cannot_be_used_fails_at_once(parameters: dict[str, Any]) -> None:
    with pytest.raises(AirflowFailException, match="Remedy: "):
        look(**parameters)


def test_the_dag_looks_once_a_day_and_survives_being_stored() -> None:
    restored = stored_and_found(dag)
    assert restored.task_ids == ["look"]
    assert set(PARAMS) == {"tables", "exclude", "hive_acid_conn_id", "executors"}
    task: Any = dag.get_task("look")
    assert {name: getattr(task, name) for name in PARAMS} == {name: f"{{{{ params.{name} }}}}" for name in PARAMS}
    assert (dag.max_active_runs, dag.catchup) == (1, False)
