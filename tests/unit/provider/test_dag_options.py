"""What the installed DAGs do by themselves comes from ``[hive_acid]``; a mistake there is told when they are parsed."""

from __future__ import annotations

import configparser
import inspect
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.config import option
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.operators.housekeeping import AcidHousekeepingOperator
from airflow_provider_acid.options import OPTIONS
from tests.unit.provider.stored_dags import stored_and_found
from tests.unit.provider.test_dag import FORMS, MODULE, ROOT

FROM_OPTIONS: dict[str, tuple[str, object]] = {
    "tables": ("sales.*, web.*", ["sales.*", "web.*"]),
    "exclude": ("sales.tmp_*", ["sales.tmp_*"]),
    "fail_on_unmatched_patterns": ("False", False),
    "delta_num_threshold": ("20", 20),
    "delta_pct_threshold": ("0.25", 0.25),
    "candidates": ("written", "written"),
    "time_window": ("22:00-06:00", "22:00-06:00"),
    "time_zone": ("Europe/Berlin", "Europe/Berlin"),
    "max_partitions": ("200", 200),
    "max_gib": ("500", 500.0),
    "batch_partitions": ("20", 20),
    "minor_lock_wait_seconds": ("30", 30.0),
    "minor_lock_timeout_action": ("refuse", "refuse"),
    "cleaning_deadline_seconds": ("2", 2.0),
    "num_executors": ("4", 4),
    "executor_cores": ("2", 2),
    "total_executor_cores": ("8", 8),
    "executor_memory": ("2g", "2g"),
    "driver_memory": ("512m", "512m"),
}
"""By field of the form: a value of the option of that name, and what the form starts with then."""


def set_options(monkeypatch: pytest.MonkeyPatch, **options: str) -> None:
    for name, text in options.items():
        monkeypatch.setenv(f"AIRFLOW__HIVE_ACID__{name.upper()}", text)


def parsed(file: Path = MODULE) -> Any:
    """The DAG of a module that is imported anew."""
    return runpy.run_path(str(file))["dag"]


def test_what_the_form_starts_with_and_scheduled_runs_do_comes_from_the_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_options(monkeypatch, **{name: text for name, (text, _) in FROM_OPTIONS.items()})
    found = parsed()
    found.validate()
    assert {name: found.params[name] for name in FROM_OPTIONS} == {
        name: expected for name, (_, expected) in FROM_OPTIONS.items()
    }
    unchanged = {"decide_only": False, "override_no_auto_compaction": False, "hive_acid_conn_id": "hive_acid_default"}
    assert dict(found.params) == {**{name: found.params[name] for name in FROM_OPTIONS}, **unchanged}


@pytest.mark.parametrize(
    ("schedule", "next_run"), [("30 1 * * *", "30 1 * * *"), ("@daily", "0 0 * * *"), (None, "0 * * * *")]
)
def test_the_schedule_comes_from_its_option(
    monkeypatch: pytest.MonkeyPatch, schedule: str | None, next_run: str
) -> None:
    if schedule is not None:
        set_options(monkeypatch, schedule=schedule)
    found = parsed()
    found.validate()
    assert stored_and_found(found).timetable.summary == next_run


def test_without_a_schedule_the_dag_runs_only_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    set_options(monkeypatch, schedule="None")
    assert not parsed().timetable.can_be_scheduled


def test_the_form_of_the_housekeeping_takes_its_timeout_from_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    set_options(monkeypatch, worker_timeout_seconds="7200")
    assert parsed(MODULE.with_name("housekeeping.py")).params["worker_timeout_seconds"] == 7200


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tables", "sales"),
        ("tables", " "),
        ("exclude", "a.b.c"),
        ("schedule", "0 2 * *"),
        ("schedule", "@hurly"),
        ("delta_num_threshold", "ten"),
        ("delta_pct_threshold", "-1"),
        ("candidates", "some"),
        ("time_window", "night"),
        ("time_zone", "Europe/Berln"),
        ("max_partitions", "0"),
        ("max_partitions", "10001"),
        ("max_gib", "much"),
        ("max_gib", "0"),
        ("batch_partitions", "many"),
        ("batch_partitions", "1001"),
        ("cleaning_deadline_seconds", "-1"),
        ("fail_on_unmatched_patterns", "perhaps"),
        ("task_retries", "few"),
        ("num_executors", "many"),
        ("num_executors", "0"),
        ("executor_cores", "1.5"),
        ("total_executor_cores", "-1"),
        ("executor_memory", "4"),
        ("driver_memory", "4 g"),
        ("spark_conn_id", " "),
        ("spark_conf", "spark.a=b"),
        ("spark_conf", '["spark.a"]'),
        ("spark_conf", '{"executor_memory": "1g"}'),
        ("spark_conf", '{"spark.a": null}'),
        # Of no form:
        ("aborted_txn_threshold", "many"),
        ("minor_publish_lock", "perhaps"),
        ("stripe_copy", "alwys"),
        ("cleaner_lock_timeout_action", "wiat"),
        ("keep_replaced_hours", "soon"),
        ("candidats", "written"),
    ],
)
def test_a_mistake_in_an_option_is_an_import_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    set_options(monkeypatch, **{name: text})
    for file in (MODULE, *([] if name == "schedule" else [MODULE.with_name("doctor.py")])):
        with pytest.raises(ConfigurationError, match=rf"\[hive_acid\] .*\b{name}\b.* Remedy: "):
            parsed(file)


def test_the_options_of_the_first_steps_work(monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = re.findall(r"```ini\n(\[hive_acid\]\ntables.*?)```", document("first-steps.md"), re.DOTALL)
    parser = configparser.ConfigParser()
    parser.read_string(block)
    options = dict(parser["hive_acid"])
    named_in_the_issue = {"tables", "exclude", "delta_num_threshold", "delta_pct_threshold", "candidates", "schedule"}
    assert named_in_the_issue <= options.keys()
    set_options(monkeypatch, **options)
    found = parsed()
    found.validate()
    for name in options.keys() - {"schedule"}:
        shown = found.params[name]
        assert (", ".join(shown) if isinstance(shown, list) else str(shown)) == options[name]
    assert stored_and_found(found).timetable.summary == options["schedule"]


def test_what_the_documents_say_once_of_spark_for_a_site_works(monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = re.findall(r"```ini\n(\[hive_acid\]\nspark_conn_id.*?)```", document("deploy.md"), re.DOTALL)
    parser = configparser.ConfigParser()
    parser.read_string(block)
    options = dict(parser["hive_acid"])
    assert {"spark_conn_id", "spark_conf", "num_executors", "executor_memory"} <= options.keys()
    set_options(monkeypatch, **options)
    assert option("spark_conf").keys() == {"spark.yarn.jars", "spark.pyspark.python", "spark.archives"}
    sizes = options.keys() - {"spark_conn_id", "spark_conf"}
    assert {name: str(parsed().params[name]) for name in sizes} == {name: options[name] for name in sizes}


def document(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def fields_documented(dag_id: str) -> dict[str, list[str]]:
    """The cells of a DAG's table in docs/dags.md, by parameter."""
    section = document("dags.md").partition(f"\n## {dag_id}\n")[2].partition("\n## ")[0]
    rows = [re.split(r" *(?<!\\)\| *", line)[1:-1] for line in section.splitlines() if line.startswith("| `")]
    return {cells[0].strip("`"): cells[1:] for cells in rows}


@pytest.mark.parametrize("form", FORMS)
def test_the_documents_have_every_field_of_the_form(form: str) -> None:
    assert list(fields_documented(form)) == list(FORMS[form])


def test_the_documents_say_which_option_a_field_starts_with_and_what_it_is_by_default() -> None:
    defaults = {name: found.default_text for name, found in OPTIONS.items()}
    found = fields_documented("acid_compaction")
    assert {name for name, cells in found.items() if cells[2] == "yes"} == FROM_OPTIONS.keys()
    for name in FROM_OPTIONS:
        shown = found[name][1].strip("`").replace("empty", "").replace("none", "")
        assert shown.lower() == defaults[name].lower(), name


@pytest.mark.parametrize("form", FORMS)
def test_the_documents_say_which_whole_numbers_a_field_takes(form: str) -> None:
    shown = {name: cells[0] for name, cells in fields_documented(form).items() if cells[0].startswith("integer")}
    words = {name: OPTIONS[name].kind.words for name in FORMS[form] if name in OPTIONS}
    assert shown == {name: text for name, text in words.items() if text.startswith("integer")}


def test_the_option_says_how_many_partitions_housekeeping_cleans_by_default() -> None:
    most = inspect.signature(AcidHousekeepingOperator).parameters["max_partitions"].default
    assert FORMS["acid_housekeeping"]["max_partitions"].value == most
    assert f"Of housekeeping: most that one run cleans, {most} by default" in OPTIONS["max_partitions"].description
