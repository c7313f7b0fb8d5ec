"""``airflow-acid doctor`` on real metastores: what was planted is found by name, and a healthy site has no problem."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest
from sqlalchemy.engine import make_url

from airflow_provider_acid.command import DATABASE_VARIABLE, MISUSED, UNWELL, WELL, main
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.doctor import server_checks, transaction_checks
from airflow_provider_acid.doctor.check import Check, note
from airflow_provider_acid.doctor.diagnosis import ANSWERS, CHECKS, TABLES, USABLE
from airflow_provider_acid.doctor.finding import Finding, Severity
from airflow_provider_acid.doctor.site import Site as Looked
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.hooks.extra import ConnectionExtra
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.metastore_server import MetastoreServer
from tests.harness.ports import free_port
from tests.integration.compaction_site import AcidTable, Site, TxnType

DAY_MS = 86_400_000
PAGE = Path(__file__).parents[2] / "docs" / "doctor.md"


def doctor(
    capsys: pytest.CaptureFixture[str], server: MetastoreServer, *arguments: str, database_url: str | None = None
) -> tuple[int, Any]:
    """Its exit code, and what it printed for programs."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(DATABASE_VARIABLE, database_url or "")
        code = main(["doctor", f"thrift://{server.host}:{server.port}", "--json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def found(document: Any) -> Mapping[str, str]:
    return {finding["check"]: finding["severity"] for finding in document["findings"]}


def inserts(site: Site, name: str = "t", **options: Any) -> AcidTable:
    table = site.table(name, **options)
    for value in range(3):
        table.insert(value)
    return table


@pytest.mark.parametrize("site", ["hive_4", "hive_4_2", "hive_3"], indirect=True)
def test_a_site_without_faults_has_no_problem_and_shows_what_is_due(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    table = inserts(site)
    table.site.set_properties(table, {"compactorthreshold.hive.compactor.delta.num.threshold": "1"})
    before = table.fingerprint()
    code, document = doctor(
        capsys, site.server, "--tables", f"{site.database}.*", database_url=site.server.database_url
    )
    assert (code, document["partitions"]) == (WELL, 1), document
    assert {finding["severity"] for finding in document["findings"]} <= {"ok", "note", "warning"}
    assert set(found(document)) >= {check.name for check in CHECKS}
    [due] = document["due"]
    assert (due["partition"], due["type"], due["deltas"]) == (str(table.entity()), "major", 3)
    assert due["read_cost_bytes"] > due["input_bytes"] > 0
    assert table.fingerprint() == before
    assert site.rows(table.entity()) == []


def failing(site: Site) -> None:
    table = inserts(site)
    for number in range(2):
        site.worker().abandon(site.begin(table.entity(), f"task {number}"), "no disk")


def left_to_others(site: Site) -> None:
    table = inserts(site)
    assert site.client.compact(table.entity(), CompactionType.MAJOR, pool="night").accepted


def refused(site: Site) -> None:
    table = inserts(site)
    (table.folder() / "delta_odd").mkdir()


def cleaning(site: Site) -> None:
    site.compact(inserts(site).entity())


def claimed(site: Site) -> None:
    site.begin(inserts(site).entity())


def opened(site: Site) -> None:
    site.reader(inserts(site))


def aborted(site: Site) -> None:
    for write in inserts(site).writes(3):
        write.insert(9).abort()


def waiting_lock(site: Site) -> None:
    table = inserts(site)
    site.reader(table)
    site.client.lock_exclusive(site.open_txn(TxnType.DEFAULT), table.entity())


def nothing(_: Site) -> None:
    pass


@pytest.mark.parametrize(
    ("plant", "check", "severity"),
    [
        (failing, "repeated failures", Severity.PROBLEM),
        (left_to_others, "requests left to others", Severity.NOTE),
        (left_to_others, "waiting requests", Severity.WARNING),
        (refused, "tables that cannot be compacted", Severity.PROBLEM),
        (cleaning, "waiting cleanings", Severity.WARNING),
        (claimed, "silent claims", Severity.PROBLEM),
        (opened, "oldest transaction", Severity.PROBLEM),
        (opened, "dead clients", Severity.PROBLEM),
        (opened, "open transactions", Severity.WARNING),
        (aborted, "aborted transactions", Severity.WARNING),
        (waiting_lock, "waiting locks", Severity.WARNING),
        (nothing, "transaction time-out", Severity.WARNING),
        (nothing, "clocks", Severity.WARNING),
        (nothing, "dead transactions are aborted", Severity.WARNING),
    ],
)
@pytest.mark.parametrize("site", ["hive_4"], indirect=True)
def test_what_was_planted_two_days_ago_is_found_by_its_name(
    site: Site, plant: Callable[[Site], None], check: str, severity: Severity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a metastore without housekeeping."""
    for name, value in {"MANY_OPEN": 1, "MANY_ABORTED": 3, "SHORT_TIMEOUT_SECONDS": math.inf}.items():
        monkeypatch.setattr(transaction_checks, name, value)
    plant(site)
    findings = answers(site, check, 2 * DAY_MS + 60_000)
    assert [finding.severity for finding in findings] == [severity], findings
    assert all(finding.seen and finding.why and finding.remedy for finding in findings)
    if plant in (failing, left_to_others, refused, cleaning, claimed):
        assert f"{site.database}.t" in findings[0].seen


@pytest.mark.parametrize(
    ("check", "severities"),
    [
        ("Hive's Initiator", [Severity.NOTE]),
        ("Hive's Cleaner", [Severity.OK]),
        ("rights in the metastore's database", [Severity.OK]),
        ("records of transactions", [Severity.WARNING] * 3),
    ],
)
@pytest.mark.parametrize("site", ["hive_4_2"], indirect=True)
def test_hives_own_threads_and_records_are_told(
    site: Site, check: str, severities: list[Severity], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_checks, "MANY_RECORDS", 1)
    inserts(site).write().insert(9)
    assert [finding.severity for finding in answers(site, check)] == severities


def test_a_check_that_breaks_says_so_and_the_others_go_on(site: Site) -> None:
    def breaks(_: Looked) -> NoReturn:
        raise ValueError("odd")

    (finding,) = Check("odd one", "fine", breaks).findings(looked_at(site))
    assert (finding.severity, finding.check) == (Severity.WARNING, "odd one")
    assert "ValueError: odd" in finding.seen


def test_of_many_findings_of_one_kind_ten_are_told(site: Site) -> None:
    seen = [note(str(number), "because", "do") for number in range(12)]
    findings = list(Check("many", "none", lambda _: seen).findings(looked_at(site)))
    assert [finding.seen for finding in findings[:10]] == [str(number) for number in range(10)]
    assert findings[10].seen == "and 2 more of the kind"


def answers(site: Site, check: str, later_ms: int = 0) -> list[Finding]:
    (named,) = [one for one in CHECKS if one.name == check]
    return list(named.findings(looked_at(site, later_ms)))


def looked_at(site: Site, later_ms: int = 0) -> Looked:
    """What checks see so much later."""
    url = site.server.database_url
    hosts = f"{site.server.host}:{site.server.port}"
    extra = ConnectionExtra.checked("test", {})
    endpoint = MetastoreEndpoint.of(extra, hosts, database_url=None if url is None else make_url(url))
    now_ms = site.client.server_now_ms()
    selection = TableSelection.of([f"{site.database}.*"])
    evaluation = site.initiator(site.settings).evaluate(selection)
    return Looked(
        endpoint, site.client, site.queue, CompactionSettings(), selection, now_ms + later_ms, now_ms, evaluation
    )


@pytest.mark.parametrize("site", ["hive_4"], indirect=True)
@pytest.mark.parametrize(
    ("may_change", "severity"), [(True, Severity.OK), (None, Severity.OK), (False, Severity.PROBLEM)]
)
def test_a_table_that_may_not_be_written_to_is_found(
    site: Site, monkeypatch: pytest.MonkeyPatch, may_change: bool | None, severity: Severity
) -> None:
    """What a store answers; tests/storage/test_libhdfs.py asks a real NameNode, and nothing is forbidden to root."""
    inserts(site)
    monkeypatch.setattr(LocalStorage, "may_change", lambda _: may_change)
    [finding] = answers(site, "rights on tables")
    assert finding.severity is severity
    assert may_change is not False or f"{site.database}.t" in finding.seen


@pytest.mark.parametrize("site", ["hive_4"], indirect=True)
def test_a_table_that_cannot_be_asked_hides_no_other_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    silent, forbidden = inserts(site, "silent"), inserts(site, "t")

    def may_change(storage: LocalStorage) -> bool:
        if storage.location.endswith(silent.name):
            raise StorageError(storage.location, "does not answer", "look at it")
        return False

    monkeypatch.setattr(LocalStorage, "may_change", may_change)
    findings = answers(site, "rights on tables")
    assert [finding.severity for finding in findings] == [Severity.WARNING, Severity.PROBLEM]
    assert str(silent.entity()) in findings[0].seen
    assert "does not answer" in findings[0].seen
    assert str(forbidden.entity()) in findings[1].seen


@pytest.mark.parametrize("site", ["hive_4_2", "hive_3"], indirect=True)
def test_without_its_database_such_a_metastore_cannot_be_worked_with(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """On 4.2 by its default settings: Hive's Cleaner is on, and readers register."""
    code, document = doctor(capsys, site.server)
    assert (code, found(document)["metastore can be worked with"]) == (UNWELL, "problem")
    assert "metastore_db_conn_id" in str(document["findings"])


def test_a_metastore_that_does_not_answer_is_a_problem_with_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", f"thrift://127.0.0.1:{free_port()}"]) == UNWELL
    printed = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "problem metastore answers" in printed
    assert "→ start the metastore, or correct host and port" in printed


def test_a_misspelt_field_is_told_before_anything_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "extra.json").write_text('{"tsl": true}')
    assert main(["doctor", "thrift://nowhere:9083", "--extra", str(tmp_path / "extra.json")]) == MISUSED
    assert "tsl in its extra is no field. Remedy: write tls, or take it out." in capsys.readouterr().err


def test_the_commands_of_the_page_work_and_it_names_every_check(site: Site) -> None:
    page = PAGE.read_text(encoding="utf-8")
    commands = [line for line in page.splitlines() if line.startswith("airflow-acid ")]
    assert len(commands) == 2
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, DATABASE_VARIABLE: site.server.database_url or ""}
    for command in commands:
        here = command.replace("metastore.example.com:9083", f"{site.server.host}:{site.server.port}")
        done = subprocess.run(here, shell=True, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode in (WELL, UNWELL), done.stderr
        assert "oldest transaction" in done.stdout
    named = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")][1:]
    assert named == [ANSWERS, USABLE, TABLES, *(check.name for check in CHECKS)]


def test_the_command_imports_neither_airflow_nor_spark() -> None:
    program = (
        "import sys, airflow_provider_acid.command; "
        "print([name for name in ('airflow', 'pyspark') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_is_installed_and_python_runs_it_too() -> None:
    for command in (
        [str(Path(sys.executable).with_name("airflow-acid"))],
        [sys.executable, "-m", "airflow_provider_acid"],
    ):
        done = subprocess.run([*command, "doctor", "--help"], capture_output=True, text=True, check=True)
        assert DATABASE_VARIABLE in done.stdout
