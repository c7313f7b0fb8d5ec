"""The page's application: nothing without the right to see it, and answers that are small and readable."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
from airflow.api_fastapi import app as airflow_app
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.models.dag import DagModel
from fastapi import FastAPI
from fastapi.testclient import TestClient
from jwt import InvalidTokenError

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.hive import HIVE_4
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.doctor.diagnosis import Diagnosis
from airflow_provider_acid.doctor.finding import Finding, Severity
from airflow_provider_acid.doctor.report import for_the_page
from airflow_provider_acid.exceptions import MetastoreUnavailableError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.health.files import now_ms
from airflow_provider_acid.health.history import TaskPlace
from airflow_provider_acid.health.metastore_view import CleaningView
from airflow_provider_acid.health.reader import HealthReader
from airflow_provider_acid.health.recording import record_history, record_report, recording_evaluation
from airflow_provider_acid.metastore.values import CompactionRow, CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plugins import backends as backends_module
from airflow_provider_acid.plugins import figures
from airflow_provider_acid.plugins.application import make_application
from airflow_provider_acid.plugins.backends import Backends
from airflow_provider_acid.plugins.page import URL_PREFIX, HiveAcidPlugin
from tests.unit.compaction.evaluated_tables import EvaluatedTables, FakeQueue, FakeStorages, entity
from tests.unit.health.test_history import records

METASTORE = "hive_acid_default"
API = ("overview", "tables", "partitions", "partition", "history", "doctor", "queue", "requests", "cleaning")
ENTITY = {"database": "d", "table": "t", "partition": "p=00001"}

ROLES = {"viewer": "viewer", "admin": "admin", "none": None}
"""Tokens, and the roles of who has them."""


class FakeAuthManager(SimpleAuthManager):
    """Airflow's own rules, with tokens that are names of roles."""

    async def get_user_from_token(self, token: str) -> SimpleAuthManagerUser:
        if token not in ROLES:
            raise InvalidTokenError(token)
        return SimpleAuthManagerUser(username=token, role=ROLES[token])


def no_answer(conn_id: str) -> Iterator[None]:
    raise MetastoreUnavailableError(f"metastore of {conn_id}", "does not answer", "start it")


class FakeQueueBackends(Backends):
    """Has no metastore."""

    @contextmanager
    def metastore(self, conn_id: str) -> Iterator[Any]:
        yield from no_answer(conn_id)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TestClient]:
    """Mounted as Airflow does it; 23 partitions and one record are known."""
    monkeypatch.setattr(airflow_app._AuthManagerState, "instance", FakeAuthManager())  # type: ignore[no-untyped-call]
    monkeypatch.setattr(DagModel, "get_team_name", lambda dag_id: None)
    location = str(tmp_path / "health")
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__HEALTH_LOCATION", location)
    site = EvaluatedTables({"t": 20, "u": 3}, FakeStorages())
    with recording_evaluation(location, METASTORE, Storages(), looks_at_all=True) as site.observer:
        site.evaluate()
    record_history(location, METASTORE, Storages(), TaskPlace(), lambda make: records())
    airflow = FastAPI()
    airflow.mount(URL_PREFIX, make_application(FakeQueueBackends()))
    with TestClient(airflow, base_url="http://airflow") as client:
        yield client


def get(client: TestClient, path: str, role: str = "viewer", **parameters: Any) -> Any:
    return client.get(
        f"{URL_PREFIX}/{path}", params=parameters, headers={"Authorization": f"Bearer {role}"}, follow_redirects=False
    )


@pytest.mark.parametrize("path", ["", "static/main.js", *(f"api/{name}" for name in API)])
def test_nobody_sees_anything_without_the_right_to(client: TestClient, path: str) -> None:
    parameters: dict[str, Any] = ENTITY if path in ("api/partition", "api/cleaning") else {}
    assert client.get(f"{URL_PREFIX}/{path}", params=parameters).status_code == 401
    assert get(client, path, "stolen", **parameters).status_code == 403
    assert get(client, path, "none", **parameters).status_code == 403
    assert get(client, path, "viewer", **parameters).status_code in (200, 502)


def test_every_route_there_is_asks_for_these_rights(client: TestClient) -> None:
    application = make_application(FakeQueueBackends())
    paths = {getattr(route, "path", "?") for route in application.routes}
    assert paths == {"/", "/static/{name}", *(f"/api/{name}" for name in API)}


@pytest.mark.parametrize("path", ["docs", "redoc", "openapi.json", "static/..%2Fpage.py", "static/application.py"])
def test_nothing_else_is_served(client: TestClient, path: str) -> None:
    assert get(client, path).status_code == 404


def test_without_the_right_to_see_the_dags_runs_there_is_no_page(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def refuse(self: object, *, details: Any, **_: object) -> bool:
        asked.append(details.id)
        return False

    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", refuse)
    assert get(client, "api/overview", "admin").status_code == 403
    assert asked == ["acid_compact_table"]


def test_the_overview_sums_up(client: TestClient) -> None:
    found = get(client, "api/overview").json()
    assert (found["partitions"], found["tables"], found["deltas"]) == (23, 2, 69)
    assert found["states"] == {"healthy": 0, "due_minor": 0, "due_major": 23, "held": 0}
    assert found["metastores"] == [METASTORE, "m"], "those of partitions, and those of the history"


def test_the_overview_tells_of_the_last_days_failures_whoever_ran_into_them(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = get(client, "api/overview").json()
    assert (found["failures_last_day"], found["last_failure"]) == (0, None)
    part = Entity("d", "t", "p=1")
    due, outcome = DuePartition(part, CompactionType.MAJOR, "x"), Outcome(part, OutcomeState.FAILED, "no disk")
    location = str(tmp_path / "health")
    record_history(location, METASTORE, Storages(), TaskPlace(), lambda make: make.of_outcomes([due], [outcome]))
    monkeypatch.setattr("airflow_provider_acid.health.reader.REFRESH_SECONDS", 0.0)
    found = get(client, "api/overview").json()
    assert found["failures_last_day"] == 1
    failure = {"database": "d", "table": "t", "partition": "p=1", "message": "no disk"}
    assert found["last_failure"].items() >= failure.items()


def test_partitions_come_in_pages(client: TestClient) -> None:
    first = get(client, "api/partitions", limit=5, sort="partition", descending=False, table="t").json()
    assert first["total"] == 20
    assert [row["partition"] for row in first["rows"]] == [f"p={number:05d}" for number in range(5)]
    assert get(client, "api/partitions", state=["healthy", "held"]).json() == {"total": 0, "rows": []}
    assert len(get(client, "api/partitions", state=["due_major", "held"]).json()["rows"]) == 23


@pytest.mark.parametrize("parameters", [{"sort": "x"}, {"state": "ill"}, {"limit": 501}, {"limit": "many"}])
def test_a_query_that_makes_no_sense_is_refused(client: TestClient, parameters: dict[str, Any]) -> None:
    assert get(client, "api/partitions", **parameters).status_code == 422


def test_a_partition_is_shown_with_its_directories_and_history(client: TestClient) -> None:
    found = get(client, "api/partition", **ENTITY).json()
    assert found["figures"]["deltas"] == len(found["directories"]) == 3
    assert found["history"] == []
    unknown = get(client, "api/partition", **{**ENTITY, "partition": "p=9"})
    assert (unknown.status_code, unknown.json()["detail"]["code"]) == (404, "unknown_partition")


def test_the_history_is_that_of_one_metastore(client: TestClient) -> None:
    assert get(client, "api/history").json() == {"total": 0, "records": []}
    (record,) = get(client, "api/history", metastore="m").json()["records"]
    assert (record["entity"]["table"], record["type"], record["bytes_after"]) == ("t", "major", 60)


def test_what_the_doctor_found_last_is_shown_worst_first_with_its_time(client: TestClient, tmp_path: Path) -> None:
    assert get(client, "api/doctor").json() is None
    location = str(tmp_path / "health")
    well = Finding("clocks", Severity.OK, "they agree")
    broken = Finding("run directory", Severity.PROBLEM, "is b's", "nothing begins", "remove it")
    before_ms = now_ms()
    for found in ((well,), (well, broken)):
        record_report(location, METASTORE, Storages(), for_the_page(Diagnosis(found, None)))
    record_report(location, "other", Storages(), for_the_page(Diagnosis((well,), None)))
    report = get(client, "api/doctor").json()
    assert report["looked_ms"] >= before_ms
    assert [finding["severity"] for finding in report["findings"]] == ["problem", "ok"]
    assert report["findings"][0] == {
        **{"check": "run directory", "severity": "problem", "seen": "is b's"},
        **{"why": "nothing begins", "remedy": "remove it"},
    }
    assert len(get(client, "api/doctor", metastore="other").json()["findings"]) == 1
    (file,) = (tmp_path / "health" / "doctor" / METASTORE).iterdir()
    file.write_bytes(b"{}\n" + file.read_bytes() + b"\xff\n")
    assert get(client, "api/doctor").json() == report


def test_a_metastore_that_does_not_answer_is_said_in_words(client: TestClient) -> None:
    answer = get(client, "api/queue")
    assert answer.status_code == 502
    assert "does not answer. Remedy: start it" in answer.json()["detail"]["message"]


def test_the_partitions_of_a_page_that_are_in_work_are_named_with_what_the_queue_says(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        CompactionRow(1, entity("t", 1), "major", CompactionState.READY_FOR_CLEANING),
        CompactionRow(2, entity("t", 1), "minor", CompactionState.WORKING),
        CompactionRow(3, entity("t", 2), "major", CompactionState.INITIATED),
        CompactionRow(4, entity("t", 3), "major", CompactionState.READY_FOR_CLEANING),
        CompactionRow(5, entity("t", 4), "major", CompactionState.SUCCEEDED),
        CompactionRow(6, entity("t", 9), "major", CompactionState.WORKING),
        CompactionRow(7, entity("elsewhere", 1), "major", CompactionState.WORKING),
    ]

    @contextmanager
    def metastore(self: object, conn_id: str) -> Iterator[Any]:
        yield None, FakeQueue(HIVE_4, rows)

    monkeypatch.setattr(FakeQueueBackends, "metastore", metastore)
    asked: dict[str, Any] = {"table": "t", "sort": "partition", "descending": False, "limit": 5}
    found = get(client, "api/requests", **asked).json()["requests"]
    assert {request["partition"]: (request["id"], request["state"]) for request in found} == {
        "p=00001": (2, "working"),
        "p=00002": (3, "initiated"),
        "p=00003": (4, "ready for cleaning"),
    }
    assert get(client, "api/requests", **asked, offset=15).json() == {"requests": []}


def test_how_long_what_was_replaced_is_kept_is_said_with_a_partitions_requests(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def metastore(self: object, conn_id: str) -> Iterator[Any]:
        yield None, None

    monkeypatch.setattr(FakeQueueBackends, "metastore", metastore)
    monkeypatch.setattr(figures, "cleaning_view", lambda *_: CleaningView([], []))
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__KEEP_REPLACED_HOURS", "48")
    assert get(client, "api/cleaning", **ENTITY).json() == {"rows": [], "blockers": [], "keep_seconds": 48 * 3600}


@pytest.mark.parametrize(("hours", "is_late"), [("48", False), ("0.5", True)])
def test_the_oldest_that_waits_to_be_cleaned_is_none_that_is_kept_for_an_undo(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, hours: str, is_late: bool
) -> None:
    row = CompactionRow(1, entity("t", 1), "major", CompactionState.READY_FOR_CLEANING, commit_ms=now_ms() - 3_600_000)

    @contextmanager
    def metastore(self: object, conn_id: str) -> Iterator[Any]:
        yield None, FakeQueue(HIVE_4, [row])

    monkeypatch.setattr(FakeQueueBackends, "metastore", metastore)
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__KEEP_REPLACED_HOURS", hours)
    answer = get(client, "api/queue").json()
    assert answer["states"] == {"ready for cleaning": 1}
    assert (answer["oldest_cleaning_ms"] is not None) == is_late


def test_only_metastores_of_the_page_are_talked_to(client: TestClient) -> None:
    for path in ("api/queue", "api/requests", "api/cleaning"):
        answer = get(client, path, metastore="somebodys_database", **ENTITY)
        assert (answer.status_code, answer.json()["detail"]["code"]) == (404, "unknown_metastore")


def test_without_a_location_it_is_said_what_to_set(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW__HIVE_ACID__HEALTH_LOCATION")
    for path in ("overview", "partitions", "history", "doctor"):
        answer = get(client, f"api/{path}")
        assert (answer.status_code, answer.json()["detail"]["code"]) == (409, "not_configured")


def test_files_that_cannot_be_read_are_said_in_words(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__HEALTH_LOCATION", "ftp://somewhere/health")
    monkeypatch.setattr(backends_module, "_open", Storages().open)
    answer = get(client, "api/overview")
    assert (answer.status_code, answer.json()["detail"]["code"]) == (502, "unavailable")


def test_the_page_may_be_framed_by_airflow_only_and_loads_nothing_from_elsewhere(client: TestClient) -> None:
    policy = get(client, "").headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'self'" in policy
    assert "http" not in get(client, "").text.replace("http-equiv", "")


def test_every_file_of_the_page_is_there(client: TestClient) -> None:
    folder = Path(backends_module.__file__).with_name("static")
    for file in folder.iterdir():
        assert get(client, f"static/{file.name}").content == file.read_bytes()
    assert {file.suffix for file in folder.iterdir()} == {".css", ".html", ".js", ".svg"}


def test_the_plugin_imports_nothing_of_the_api_before_a_request_comes() -> None:
    program = "import sys, airflow_provider_acid.plugins.page as p; print([n for n in sys.modules if n == 'fastapi' or n.startswith(('pyarrow', 'airflow_provider_acid.health'))])"  # noqa: E501
    answer = run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[-1] == "[]"


def test_the_page_is_in_the_navigation() -> None:
    (view,) = HiveAcidPlugin.external_views
    assert (view["name"], view["url_route"], view["destination"]) == ("Hive ACID", "hive-acid", "nav")
    assert (view["href"], HiveAcidPlugin.fastapi_apps[0]["url_prefix"]) == ("/hive-acid/", "/hive-acid")


def test_where_airflow_lies_below_a_path_the_navigation_leads_below_it() -> None:
    show = "from airflow_provider_acid.plugins.page import HiveAcidPlugin as plugin; print(plugin.external_views)"
    environment = {**os.environ, "AIRFLOW__API__BASE_URL": "https://example.org/airflow/"}
    shown = run([sys.executable, "-c", show], env=environment, check=True, capture_output=True, text=True).stdout
    view = ast.literal_eval(shown.splitlines()[-1])[0]
    assert view["href"] == "/airflow/hive-acid/"
    assert view["icon"] == "/airflow/hive-acid/static/icon.svg"


def test_the_reader_is_made_once_for_each_location(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Backends()
    readers: Callable[[], HealthReader | None] = found.reader
    assert readers() is None
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__HEALTH_LOCATION", "/a")
    first = readers()
    assert first is readers()
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__HEALTH_LOCATION", "/b")
    assert readers() is not first
    assert Entity("d", "t").partition is None
