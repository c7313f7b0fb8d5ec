"""What ``airflow-acid doctor`` says of directories: of tables, of runs, of the health store; on a real metastore."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_acid.command import main
from airflow_provider_acid.compaction.evaluate.initiator import Initiator
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.publish.discard import DISCARD_PREFIX
from airflow_provider_acid.compaction.publish.staging import REMOVED_PREFIX, STAGING_PREFIX
from airflow_provider_acid.doctor import health_check
from airflow_provider_acid.doctor.finding import Severity
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.health.recording import recording_evaluation
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.storages.local import LocalStorage
from tests.integration.compaction_site import ON_BOTH_METASTORES, Site, due, fingerprint
from tests.integration.doctor_site import DELTA_NUM, answers, failing, inserts
from tests.integration.twin_tables import make_twins

ON_HIVE_4 = pytest.mark.parametrize("site", ["hive_4"], indirect=True)
RUNS, TRIP, REMAINS, HEALTH = "run directory", "storage round trip", "remains of dead compactions", "health store"


def orphaned(site: Site) -> None:
    (inserts(site).folder() / f"{STAGING_PREFIX}0123456789abcdef").mkdir()


def orphaned_where_compactions_failed(site: Site) -> None:
    """Of such a partition no evaluation makes a listing."""
    failing(site)
    (site.admin.table_location(site.database, "t") / f"{STAGING_PREFIX}0123456789abcdef").mkdir()


def cut_off_removal(site: Site) -> None:
    (inserts(site).folder() / f"{REMOVED_PREFIX}0123456789abcdef").mkdir()


def cut_off_cleaning(site: Site) -> None:
    (inserts(site).folder() / f"{DISCARD_PREFIX}0123").mkdir()


def twins(site: Site) -> None:
    make_twins(site)


def left_alone(site: Site) -> None:
    inserts(site, properties={"no_auto_compaction": "true"})
    inserts(site, "odd", properties={"no_auto_compaction": "true", DELTA_NUM: "many"})


@ON_HIVE_4
@pytest.mark.parametrize(
    ("plant", "check", "severity"),
    [
        (orphaned, REMAINS, Severity.WARNING),
        (orphaned_where_compactions_failed, REMAINS, Severity.WARNING),
        (cut_off_removal, REMAINS, Severity.WARNING),
        (cut_off_cleaning, REMAINS, Severity.WARNING),
        (twins, "twin results", Severity.PROBLEM),
    ],
)
def test_what_lies_in_a_table_and_should_not_is_found_by_its_name(
    site: Site, plant: Callable[[Site], None], check: str, severity: Severity
) -> None:
    plant(site)
    folder = site.admin.table_location(site.database, "t")
    before = fingerprint(folder)
    (finding,) = answers(site, check)
    assert finding.severity is severity, finding
    assert f"{site.database}.t" in finding.seen
    assert finding.why
    assert "acid_housekeeping" in finding.remedy
    assert fingerprint(folder) == before


@ON_HIVE_4
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


@ON_HIVE_4
def test_a_table_that_cannot_be_asked_hides_no_other_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    silent, forbidden = inserts(site, "silent"), inserts(site, "t")

    def may_change(storage: LocalStorage) -> bool:
        if storage.location.endswith(silent.name):
            raise StorageError(storage.location, "does not answer", "look at it")
        return False

    monkeypatch.setattr(LocalStorage, "may_change", may_change)
    findings = answers(site, "rights on tables")
    assert [finding.severity for finding in findings] == [Severity.PROBLEM, Severity.WARNING], "the worst first"
    assert str(forbidden.entity()) in findings[0].seen
    assert str(silent.entity()) in findings[1].seen
    assert "does not answer" in findings[1].seen


@ON_HIVE_4
def test_what_a_living_compaction_works_on_is_no_remains(site: Site) -> None:
    table = inserts(site)
    begun = site.begin(table.entity())
    assert (table.folder() / begun.plan.staging).is_dir()
    (table.folder() / f"{DISCARD_PREFIX}0123").mkdir()
    assert [finding.severity for finding in answers(site, REMAINS)] == [Severity.OK]
    site.end(begun.transaction.txn_id, site.admin.abort)
    site.queue.fail(begun.claim, "died")
    (finding,) = answers(site, REMAINS)
    assert begun.plan.staging in finding.seen
    assert " ago" in finding.seen


@ON_BOTH_METASTORES
def test_what_is_kept_for_an_undo_is_no_remains(keeping: Site) -> None:
    """Not even where the row, as that of a user's request on Hive 4, does not tell whose staging directory it is."""
    table = inserts(keeping)
    asked = keeping.client.compact(table.entity(), CompactionType.MAJOR)
    assert keeping.compact(due(table.entity(), asked.id)).state is OutcomeState.COMPACTED
    assert [name for name in table.directories() if name.startswith(STAGING_PREFIX)]
    (finding,) = answers(keeping, REMAINS)
    assert finding.severity is Severity.OK, finding


@ON_HIVE_4
def test_a_table_that_nobody_compacts_is_told_where_it_would_be_due(site: Site) -> None:
    """And one of them that cannot be looked at hides no other."""
    left_alone(site)
    due, odd = sorted(answers(site, "tables that nobody compacts"), key=lambda finding: finding.severity.rank)
    assert (due.severity, odd.severity) == (Severity.NOTE, Severity.WARNING)
    assert f"{site.database}.t has no_auto_compaction, and 1 of its partitions would be due" in due.seen
    assert f"{site.database}.odd: " in odd.seen


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@ON_HIVE_4
@pytest.mark.parametrize("exists", [True, False])
def test_a_run_directory_that_is_the_users_own_or_can_be_made_is_well(site: Site, home: Path, exists: bool) -> None:
    inserts(site)
    if exists:
        (home / ".airflow_acid").mkdir(mode=0o700)
        (home / ".airflow_acid" / "runs").mkdir(mode=0o700)
    before = fingerprint(home)
    assert [finding.severity for finding in answers(site, RUNS)] == [Severity.OK]
    assert fingerprint(home) == before


@ON_HIVE_4
def test_a_run_directory_that_others_may_write_into_is_a_problem(site: Site, home: Path) -> None:
    inserts(site)
    (home / ".airflow_acid").mkdir()
    (home / ".airflow_acid").chmod(0o777)
    (finding,) = answers(site, RUNS)
    assert finding.severity is Severity.PROBLEM
    assert "may be written to by others (its mode is 777)" in finding.seen
    assert "run_directory" in finding.remedy


@ON_HIVE_4
def test_a_home_that_is_not_there_or_may_not_be_written_to_is_a_problem(
    site: Site, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inserts(site)
    with monkeypatch.context() as forbidden:
        forbidden.setattr(LocalStorage, "may_change", lambda _: False)
        assert [finding.severity for finding in answers(site, RUNS)] == [Severity.PROBLEM]
    home.rmdir()
    (finding,) = answers(site, RUNS)
    assert (finding.severity, "run_directory" in finding.remedy) == (Severity.PROBLEM, True)


@ON_HIVE_4
def test_only_who_is_told_to_tries_the_stores_and_leaves_nothing(
    site: Site, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inserts(site)
    server = f"thrift://{site.server.host}:{site.server.port}"
    command = ["doctor", server, "--tables", f"{site.database}.*", "--json"]

    def tried() -> dict[str, str]:
        main([*command, "--try-storage"])
        found = json.loads(capsys.readouterr().out)["findings"]
        return {finding["check"]: finding["severity"] for finding in found if finding["check"] in (RUNS, TRIP)}

    main(command)
    assert TRIP not in capsys.readouterr().out
    assert list(home.iterdir()) == []
    assert tried() == {RUNS: "ok", TRIP: "ok"}
    assert [path.relative_to(home) for path in home.rglob("*")] == [Path(".airflow_acid"), Path(".airflow_acid/runs")]
    # What another check says better is said once.
    (home / ".airflow_acid").chmod(0o777)
    assert tried() == {RUNS: "problem", TRIP: "note"}
    (home / ".airflow_acid").chmod(0o700)
    monkeypatch.setattr(LocalStorage, "delete_files", lambda *_: None)
    assert tried() == {RUNS: "ok", TRIP: "problem"}
    assert list((home / ".airflow_acid" / "runs").iterdir()) == []


@ON_HIVE_4
def test_a_health_store_is_looked_at_where_it_is_named(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Missing, well, forbidden, silent, garbled, and empty."""
    inserts(site)
    folder = tmp_path / "health"
    assert [finding.severity for finding in answers(site, HEALTH)] == [Severity.OK]
    (missing,) = answers(site, HEALTH, health=folder)
    assert (missing.severity, "is not there" in missing.seen) == (Severity.WARNING, True)
    record(site, folder)
    assert [finding.severity for finding in answers(site, HEALTH, health=folder)] == [Severity.OK]
    with monkeypatch.context() as forbidden:
        forbidden.setattr(LocalStorage, "may_change", lambda _: False)
        assert [finding.severity for finding in answers(site, HEALTH, health=folder)] == [Severity.PROBLEM]
    with monkeypatch.context() as later:
        later.setattr(health_check, "SILENT_SECONDS", 0.0)
        (silent,) = answers(site, HEALTH, health=folder)
        assert (silent.severity, "was written last" in silent.seen) == (Severity.WARNING, True)
    (file,) = folder.rglob("*.parquet")
    file.write_bytes(b"PAR1 of something else")
    (garbled,) = answers(site, HEALTH, health=folder)
    assert (garbled.severity, file.name in garbled.seen) == (Severity.WARNING, True)
    file.unlink()
    (empty,) = answers(site, HEALTH, health=folder)
    assert (empty.severity, "holds no partition's figures" in empty.seen) == (Severity.WARNING, True)


def record(site: Site, folder: Path) -> None:
    """As a sensor does."""
    selection = TableSelection.of([f"{site.database}.*"])
    with recording_evaluation(f"file:{folder}", "metastore", Storages(), looks_at_all=True) as observer:
        Initiator(site.client, site.queue, site.settings, observer=observer).evaluate(selection)
