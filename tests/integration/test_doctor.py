"""``airflow-acid doctor`` on real metastores: what was planted is found by name, and a healthy site has no problem."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from airflow_provider_acid.command import DATABASE_VARIABLE, MISUSED, UNWELL, WELL, main
from airflow_provider_acid.doctor import server_checks, transaction_checks
from airflow_provider_acid.doctor.check import Check, note
from airflow_provider_acid.doctor.diagnosis import ANSWERS, CHECKS, TABLES, USABLE
from airflow_provider_acid.doctor.finding import Severity
from airflow_provider_acid.doctor.site import Site as Looked
from airflow_provider_acid.doctor.storage_check import STORAGE_CHECKS
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.metastore_server import MetastoreServer
from tests.harness.ports import free_port
from tests.integration.compaction_site import Site, TxnType
from tests.integration.doctor_site import DAY_MS, DELTA_NUM, answers, failing, inserts, looked_at

NO_TABLE = ("--tables", "none_has_this_name.*")
ADDRESSES = "metastore addresses"
PAGE = Path(__file__).parents[2] / "docs" / "doctor.md"


def doctor(
    capsys: pytest.CaptureFixture[str],
    server: MetastoreServer,
    *arguments: str,
    database_url: str | None = None,
    hosts: str = "",
) -> tuple[int, Any]:
    """Its exit code, and what it printed for programs."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(DATABASE_VARIABLE, database_url or "")
        code = main(["doctor", hosts or f"thrift://{server.host}:{server.port}", "--json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def found(document: Any) -> Mapping[str, str]:
    return {finding["check"]: finding["severity"] for finding in document["findings"]}


@pytest.mark.parametrize("site", ["hive_4", "hive_4_2", "hive_3"], indirect=True)
def test_a_site_without_faults_has_no_problem_and_shows_what_is_due(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    table = inserts(site)
    table.site.set_properties(table, {DELTA_NUM: "1"})
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


@pytest.mark.parametrize("site", ["hive_4"], indirect=True)
@pytest.mark.parametrize(("keep_hours", "severity"), [(41.0, Severity.WARNING), (43.0, Severity.OK)])
def test_a_cleaning_is_late_from_when_what_was_replaced_is_no_longer_kept(
    site: Site, keep_hours: float, severity: Severity
) -> None:
    cleaning(site)
    site.settings = replace(site.settings, keep_replaced_hours=keep_hours)
    findings = answers(site, "waiting cleanings", 2 * DAY_MS + 60_000)
    assert [finding.severity for finding in findings] == [severity]


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


@pytest.mark.parametrize("site", ["hive_4"], indirect=True)
def test_the_connections_test_tells_what_needs_no_table(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a metastore without housekeeping; the second address is dead."""
    hosts = f"{site.server.host}:{site.server.port},127.0.0.1:{free_port()}"
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_ACID_DEFAULT", json.dumps({"conn_type": "hive_acid", "host": hosts}))
    is_good, message = AcidMetastoreHook().test_connection()
    assert is_good, message
    assert message.startswith("Hive metastore 4.0.1 answers and can be used. Warning: ")
    assert "metastore.housekeeping.threads.on is not true" in message
    assert hosts.rpartition(",")[2] in message


@pytest.mark.parametrize("site", ["hive_4_2", "hive_3"], indirect=True)
def test_without_its_database_such_a_metastore_cannot_be_worked_with(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """On 4.2 by its default settings: Hive's Cleaner is on, and readers register."""
    code, document = doctor(capsys, site.server)
    assert (code, found(document)["metastore can be worked with"]) == (UNWELL, "problem")
    assert "metastore_db_conn_id" in str(document["findings"])


def test_a_metastore_that_does_not_answer_is_a_problem_with_a_remedy(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert main(["doctor", f"thrift://127.0.0.1:{free_port()}"]) == UNWELL
    output = capsys.readouterr().out
    assert (output.count("┏"), caplog.messages) == (1, []), "one table, and nothing beside it"
    printed = " ".join(output.replace("│", " ").split())
    assert "problem metastore answers" in printed
    assert "→ start the metastore, or correct host and port" in printed


def test_a_misspelt_field_is_told_before_anything_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "extra.json").write_text('{"tsl": true}')
    assert main(["doctor", "thrift://nowhere:9083", "--extra", str(tmp_path / "extra.json")]) == MISUSED
    assert "tsl in its extra is no field. Remedy: write tls, or take it out." in capsys.readouterr().err


@pytest.mark.parametrize("site", ["hive_4"], indirect=True)
def test_each_of_several_addresses_is_asked(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    living, dead = f"thrift://{site.server.host}:{site.server.port}", f"127.0.0.1:{free_port()}"
    assert found(doctor(capsys, site.server, *NO_TABLE)[1])[ADDRESSES] == "ok"

    _, document = doctor(capsys, site.server, *NO_TABLE, hosts=f"{living},{dead}")
    (told,) = [finding for finding in document["findings"] if finding["check"] == ADDRESSES]
    assert (told["severity"], dead in told["seen"]) == ("warning", True)
    assert found(document)["table patterns"] == "warning"

    monkeypatch.setattr(AcidMetastoreClient, "database_uuid", lambda client: str(client.addresses[0].host))
    code, document = doctor(capsys, site.server, *NO_TABLE, hosts=f"{living},localhost:{site.server.port}")
    (told,) = [finding for finding in document["findings"] if finding["check"] == ADDRESSES]
    assert (code, told["severity"]) == (UNWELL, "problem")
    assert "different databases" in told["seen"]


def test_the_commands_of_the_page_work_and_it_names_every_check(site: Site) -> None:
    page = PAGE.read_text(encoding="utf-8")
    commands = [line for line in page.splitlines() if line.startswith("airflow-acid doctor ")]
    assert len(commands) == 2
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, DATABASE_VARIABLE: site.server.database_url or ""}
    for command in commands:
        here = command.replace("metastore.example.com:9083", f"{site.server.host}:{site.server.port}")
        done = subprocess.run(here, shell=True, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode in (WELL, UNWELL), done.stderr
        assert "oldest transaction" in done.stdout
    lines = page.partition("\n## In Airflow")[0].splitlines()
    named = [line.split("|")[1].strip() for line in lines if line.startswith("| ")][1:]
    assert named == [ANSWERS, USABLE, TABLES, *(check.name for check in (*CHECKS, *STORAGE_CHECKS))]


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
