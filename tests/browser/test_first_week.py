"""The first week with this package, as somebody has it who is new to it; docs/first-week.md tells it with pictures.

The tests follow each other, on one metastore and one Airflow that has nothing of this tree but its wheel.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from airflow_provider_acid.command import DATABASE_VARIABLE, UNWELL, WELL
from tests.browser.conftest import SCREENSHOTS, PageOf, pages_of
from tests.browser.first_week_site import (
    DAG_FILE,
    INSTALLED_DAGS,
    MISSPELT_FILES,
    OPTIONS,
    SWEEPS,
    SWEEPS_FILE,
    WEB_SWEEP,
    WITHOUT_SPARK,
    address_of,
    compacted_partitions,
    connect,
    directories,
    failure,
    is_read_as_hive_did,
    newest_compacted,
    queue_and_files,
    register_tables,
    scheduled_run,
    switch_on,
)
from tests.browser.former_release import RUNS, WHEEL, FormerRelease
from tests.browser.planted_faults import CHECKS, PlantedFaults
from tests.browser.running_airflow import RunningAirflow
from tests.browser.terminal import Shown, type_in
from tests.harness.airflow_connections import connections_to
from tests.harness.hive_engine_program import hive_4_metastore_program
from tests.harness.hive_tables import FixtureTable
from tests.harness.metastore_database import ServerDatabase
from tests.harness.metastore_server import MetastoreServer
from tests.harness.ports import free_port
from tests.harness.postgres_server import PostgresServer
from tests.harness.wheel_environment import ROOT, WheelEnvironment, build_wheel

KEPT = ROOT / ".cache" / "first-week"
"""Of environments, whose bytecode need not be made anew each time."""

Screenshot = Callable[[Page, str], None]
KeepTerminal = Callable[[Shown, str, Mapping[Path, str]], None]


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[MetastoreServer]:
    """Hive 4.0.1 as its default settings leave it: without housekeeping."""
    folder = tmp_path_factory.mktemp("metastore")
    database = ServerDatabase(postgres, "first_week")
    with MetastoreServer(folder, reaper=False, program=hive_4_metastore_program(), database=database) as server:
        yield server


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the user who does all that."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path) -> WheelEnvironment:
    """The wheel in an environment that was empty."""
    KEPT.mkdir(parents=True, exist_ok=True)
    environment = WheelEnvironment(KEPT / "environment")
    assert environment.distributions() == {}
    environment.install(wheel)
    return environment


@pytest.fixture(scope="module")
def tables(metastore: MetastoreServer) -> dict[str, FixtureTable]:
    """The tables of two databases, by name."""
    return register_tables(metastore)


@pytest.fixture(scope="module")
def airflow(
    tmp_path_factory: pytest.TempPathFactory,
    metastore: MetastoreServer,
    installed: WheelEnvironment,
    tables: dict[str, FixtureTable],
) -> Iterator[RunningAirflow]:
    """With the configuration of a new user, and the DAGs paused, as they are by default."""
    folder = tmp_path_factory.mktemp("airflow")
    dag_files = {"acid.py": DAG_FILE, "sweeps.py": SWEEPS_FILE}
    settings = {**connections_to(metastore), **OPTIONS}
    dags = len(INSTALLED_DAGS) + 2
    with RunningAirflow(folder, metastore, dag_files, dags, settings, installed.programs) as airflow:
        yield airflow


@pytest.fixture
def page_of(airflow: RunningAirflow, browser: Browser) -> Iterator[PageOf]:
    """As for the other site."""
    yield from pages_of(airflow, browser)


@pytest.fixture(scope="session")
def keep_terminal() -> KeepTerminal:
    """As ``screenshot``, for what was typed into a terminal, with places as a site has them."""

    def keep(shown: Shown, name: str, places: Mapping[Path, str]) -> None:
        if os.environ.get("SCREENSHOTS"):
            shown.keep(SCREENSHOTS / f"{name}.svg", shown.command.split()[0], places)

    return keep


def doctor(
    installed: WheelEnvironment, server: MetastoreServer, home: Path, patterns: tuple[str, ...], *more: str
) -> Shown:
    tables = [part for pattern in patterns for part in ("--tables", pattern)]
    environment = {**os.environ, "HOME": str(home), DATABASE_VARIABLE: server.server_database.url}
    return type_in(installed.programs, ["airflow-acid", "doctor", server.uri, *tables, *more], environment, home)


def named(shown: Shown) -> dict[str, str]:
    """The checks that found something, and how bad that is."""
    findings = json.loads(shown.colored)["findings"]
    return {finding["check"]: finding["severity"] for finding in findings if finding["severity"] != "ok"}


def test_monday_the_doctor_names_twelve_faults_and_none_of_them_once_they_are_mended(
    installed: WheelEnvironment, metastore: MetastoreServer, home: Path, keep_terminal: KeepTerminal
) -> None:
    faults = PlantedFaults(metastore, home)
    faults.plant()
    shown = doctor(installed, metastore, home, faults.patterns)
    assert shown.code == UNWELL, shown.text
    for check, severity in CHECKS.items():
        assert f" {severity} {check} " in shown.text
    assert len(CHECKS) == 12
    assert named(doctor(installed, metastore, home, faults.patterns, "--json")) == CHECKS
    keep_terminal(shown, "week-doctor", {home: "/var/lib/airflow"})
    faults.mend()
    shown = doctor(installed, metastore, home, faults.patterns, "--json")
    assert (shown.code, named(shown)) == (WELL, {})


def test_the_wheel_brings_the_provider_and_its_dags(
    installed: WheelEnvironment, airflow: RunningAirflow, page_of: PageOf, screenshot: Screenshot
) -> None:
    version = installed.distributions()["airflow-provider-acid"]
    command = ["airflow", "providers", "list", "--output", "json"]
    listed = type_in(installed.programs, command, airflow.environment, airflow.folder)
    assert listed.code == WELL, listed.text
    providers = {provider["package_name"]: provider["version"] for provider in json.loads(listed.text)}
    assert providers["airflow-provider-acid"] == version
    assert airflow.ask("/importErrors")["total_entries"] == 0
    assert {dag["dag_id"] for dag in airflow.ask("/dags")["dags"]} == {*INSTALLED_DAGS, WEB_SWEEP, WITHOUT_SPARK}
    page = page_of("admin", "/dags", complains=True)
    for dag_id in INSTALLED_DAGS:
        expect(page.get_by_role("link", name=dag_id, exact=True)).to_be_visible()
    screenshot(page, "week-installed")


def test_two_databases_are_swept_with_different_budgets_by_configuration_alone(
    airflow: RunningAirflow, tables: dict[str, FixtureTable], page_of: PageOf, screenshot: Screenshot
) -> None:
    before = {name: directories(table) for name, table in tables.items()}
    for dag_id in SWEEPS:
        switch_on(airflow, dag_id)
    runs = {dag_id: scheduled_run(airflow, dag_id) for dag_id in SWEEPS}
    for dag_id, run in runs.items():
        airflow.wait_for_run(dag_id, run)
    compacted = {name: set(compacted_partitions(table)) for name, table in tables.items()}
    assert compacted["acid_part"] == set(tables["acid_part"].partitions)
    assert compacted["acid_merge"] == {""}
    assert len(compacted["a_part"]) == 1, "the budget of web"
    for name, table in tables.items():
        assert directories(table) != before[name]
        assert is_read_as_hive_did(airflow.server, table)
    page = page_of("admin", f"/dags/{WEB_SWEEP}/runs/{runs[WEB_SWEEP]}/tasks/find_due_partitions", complains=True)
    expect(page.get_by_text("left to the next run (budget)").first).to_be_visible()
    screenshot(page, "week-sweeps")


def left_by_the_budget(table: FixtureTable) -> str:
    """The first partition that is due and was not swept."""
    compacted = compacted_partitions(table)
    return next(
        partition
        for partition in table.partitions
        if partition not in compacted and len(list((table.location / partition).glob("*delta_*"))) > 1
    )


def test_a_compaction_is_asked_for_on_the_page_and_watched_to_its_end(
    airflow: RunningAirflow, tables: dict[str, FixtureTable], page_of: PageOf, screenshot: Screenshot
) -> None:
    table = tables["a_part"]
    partition = left_by_the_budget(table)
    switch_on(airflow, "acid_compact_table", "acid_undo")
    page = page_of("admin", address_of(table, partition))
    head = page.locator(".title-row")
    expect(head).to_contain_text("due")
    page.get_by_role("button", name="Compact…").click()
    page.get_by_role("radio", name="Major").check()
    page.get_by_role("button", name="Start").click()
    run = page.locator("dialog .message a").inner_text()
    page.get_by_role("button", name="Close").click()
    heads: list[str] = []
    base = page.get_by_role("cell", name=re.compile("^base_"))
    while not (heads and "Healthy" in heads[-1] and base.count()):
        assert len(heads) < 360, heads[-1]
        page.get_by_role("button", name="Refresh").click()
        page.wait_for_timeout(500)
        heads.append(head.inner_text())
        if "working" in heads[-1] and "working" not in "".join(heads[:-1]):
            screenshot(page, "week-compacting")
    for state in ("run (queued|running)", "working"):
        assert any(re.search(state, said) for said in heads), heads
    airflow.wait_for_run("acid_compact_table", run)
    assert partition in compacted_partitions(table)
    assert is_read_as_hive_did(airflow.server, table)
    page.reload()
    expect(page.locator("tbody tr", has_text="compacted").first).to_be_visible()
    expect(page.get_by_text("is kept for an undo")).to_be_visible()
    screenshot(page, "week-compacted")


def test_the_compaction_is_taken_back_and_the_rows_have_the_same_ids(
    airflow: RunningAirflow, tables: dict[str, FixtureTable], page_of: PageOf, screenshot: Screenshot
) -> None:
    table = tables["a_part"]
    partition = newest_compacted(table)
    folder = table.location / partition
    kept = sorted(path.name for path in folder.glob("*delta_*"))
    assert kept, "what was replaced is kept"
    page = page_of("admin", address_of(table, partition), complains=True)
    page.get_by_role("button", name="Undo…").click()
    page.get_by_role("button", name="Start").click()
    run = page.locator("dialog .message a").inner_text()
    airflow.wait_for_run("acid_undo", run)
    assert sorted(path.name for path in folder.iterdir() if path.name[0] not in "._") == kept
    assert is_read_as_hive_did(airflow.server, table)
    page.goto(f"/dags/acid_undo/runs/{run}/tasks/undo")
    expect(page.get_by_text("Taken back: ").first).to_be_visible()
    screenshot(page, "week-undone")


def test_a_mistake_of_each_kind_is_told_at_once_by_name_and_changes_nothing(
    installed: WheelEnvironment,
    airflow: RunningAirflow,
    home: Path,
    page_of: PageOf,
    screenshot: Screenshot,
    keep_terminal: KeepTerminal,
) -> None:
    server = airflow.server
    switch_on(airflow, *INSTALLED_DAGS[:2], WITHOUT_SPARK)
    connect(airflow, "hive_typo", conn_type="hive_acid", host=server.host, port=server.port, extra='{"tsl": true}')
    connect(airflow, "spark_lost", conn_type="spark", host="local", extra='{"spark-binary": "spark3-submit"}')
    before = queue_and_files(server)
    for name, text in MISSPELT_FILES.items():
        (airflow.dags_folder / name).write_text(text)
    one_table = {"database": "web", "table": "a_part"}
    runs: dict[str, tuple[str, dict[str, object]]] = {
        "tabel": ("acid_compact_table", {**one_table, "tabel": "a_part"}),
        "a_parts": ("acid_compact_table", {**one_table, "table": "a_parts"}),
        "tsl": ("acid_compact_table", {**one_table, "hive_acid_conn_id": "hive_typo"}),
        "sails.*": ("acid_compaction", {"tables": ["sails.*"]}),
        "spark3-submit": (WITHOUT_SPARK, {}),
    }
    started = {word: (dag_id, airflow.trigger(dag_id, conf)) for word, (dag_id, conf) in runs.items()}
    for word, (dag_id, run) in started.items():
        tries, log = failure(airflow, dag_id, run)
        assert tries == 1, "no other try can mend it"
        assert word in log, log
    nowhere = f"127.0.0.1:{free_port()}"
    shown = type_in(installed.programs, ["airflow-acid", "doctor", f"thrift://{nowhere}"], dict(os.environ), home)
    assert shown.code == UNWELL
    assert (nowhere in shown.text, "problem metastore answers" in shown.text) == (True, True)
    keep_terminal(shown, "week-address", {})
    airflow.wait_until(lambda: airflow.ask("/importErrors")["total_entries"] == len(MISSPELT_FILES), 60, "are read")
    found = airflow.ask("/importErrors")["import_errors"]
    errors = {error["filename"].rpartition("/")[2]: error["stack_trace"] for error in found}
    for name, word in (("option.py", "max_partitons"), ("literal.py", "wirtten")):
        assert word in errors[name]
    assert queue_and_files(server) == before
    page = page_of("admin", "/", complains=True)
    page.get_by_role("button", name="Import Error").click()
    page.get_by_role("button", name="option.py").click()
    told = page.locator("code", has_text="max_partitons")
    expect(told).to_be_visible()
    # The picture shows a place as a site has it, and not that of whoever took it.
    told.evaluate(
        "(told, place) => { told.textContent = told.textContent.replaceAll(place, '/opt/airflow'); }", str(KEPT)
    )
    screenshot(page, "week-mistakes")
    for name in MISSPELT_FILES:
        (airflow.dags_folder / name).unlink()


def test_a_name_or_value_of_the_configuration_that_is_none_is_named_where_dag_files_are_read(
    installed: WheelEnvironment, airflow: RunningAirflow
) -> None:
    command = ["airflow", "dags", "list-import-errors", "--local", "--output", "json"]
    for name, value, words in (
        ("CANDIDATES", "wirtten", "[hive_acid] candidates: is 'wirtten'"),
        ("TABELS", "sales.*", "[hive_acid] tabels: is no option. Remedy: write tables"),
    ):
        environment = {**airflow.environment, f"AIRFLOW__HIVE_ACID__{name}": value}
        assert words in type_in(installed.programs, command, environment, airflow.folder).text


def test_an_upgrade_over_a_release_that_was_killed_puts_in_order_what_it_left(
    wheel: Path,
    airflow: RunningAirflow,
    home: Path,
    tmp_path: Path,
    page_of: PageOf,
    screenshot: Screenshot,
    keep_terminal: KeepTerminal,
) -> None:
    server = airflow.server
    environment = WheelEnvironment(KEPT / "former")
    environment.install(WHEEL)
    former = FormerRelease(tmp_path, environment, server, airflow.health)
    former.compact_until_killed()
    assert former.states() == {table.name: "ready for cleaning" for table in former.tables}
    assert all(is_read_as_hive_did(server, table) for table in former.tables)
    page = page_of("admin", "/hive-acid/#/partitions?search=former")
    for table in former.tables:
        expect(page.locator("tbody tr", has_text=f"former.{table.name}")).to_be_visible()
    former.let_its_transaction_die()
    version = environment.distributions()["airflow-provider-acid"]
    environment.install(wheel)
    assert environment.distributions()["airflow-provider-acid"] > version
    for dag_id in RUNS:
        former.run(dag_id)
    assert former.states() == {table.name: "succeeded" for table in former.tables}
    for table in former.tables:
        assert [name.partition("_")[0] for name in directories(table)] == ["base"]
        assert is_read_as_hive_did(server, table)
    health = ("--health-location", f"file:{airflow.health}")
    shown = doctor(environment, server, home, ("former.*",), *health)
    assert shown.code == WELL, shown.text
    keep_terminal(shown, "week-upgraded", {airflow.folder: "/opt/airflow"})
    assert named(doctor(environment, server, home, ("former.*",), *health, "--json")) == {}
