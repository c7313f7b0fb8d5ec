"""Whoever gets at the files of a run reaches no table by them: what was changed is refused by name, alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from airflow_provider_acid.acid.sealing import HEAD_BYTES, RunKey, content_of
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.run.run_place import RunPlace, run_name
from airflow_provider_acid.compaction.work.batch import CompactionBatch
from airflow_provider_acid.compaction.work.worker import Worker
from airflow_provider_acid.exceptions import UnauthenticatedError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app import spark_tasks
from airflow_provider_acid.merge.app.driver import EXIT_DONE, Driver
from airflow_provider_acid.plan.plan import CompactionPlan, SourceFile
from airflow_provider_acid.plan.result import CompactionResult
from tests.harness.compaction_chain import wait_until
from tests.integration.compaction_site import ON_BOTH_METASTORES, AcidTable, Site, due
from tests.unit.merge.fake_spark import FakeSpark, FakeUdf

pytestmark = ON_BOTH_METASTORES

MINE, VICTIM = "mine", "victim"
PLANS = {MINE: "0000.plan.json", VICTIM: "0001.plan.json"}

Change = Callable[[Path, Mapping[str, AcidTable]], None]
"""What somebody does to a run directory before the application looks."""


class Batch:
    """Two tables in one run, with the real driver on a stand-in for Spark."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.tables = {name: _table(site, name, first) for name, first in ((MINE, 0), (VICTIM, 700))}
        self.run: RunDirectory | None = None
        self.error: UnauthenticatedError | None = None

    def play(self, change: Change) -> dict[str, Outcome]:
        """The outcomes by table."""
        items = [due(table.entity()) for table in self.tables.values()]
        batch = CompactionBatch(items, self._open_worker, self._make_run, max_active=2, poll_seconds=0.05)
        batch.start()
        try:
            run = batch.wait_until_planned()
            assert run is not None
            folder = Path(run.location.removeprefix("file:"))
            wait_until((folder / PLANS[VICTIM]).exists)
            change(folder, self.tables)
            driver = Driver(cast("SparkSession", FakeSpark()), run.location, Storages(), run.key.secret)
            assert driver.run() == EXIT_DONE
        except UnauthenticatedError as error:
            self.error = error
        finally:
            batch.application_ended()
        return {outcome.entity.table: outcome for outcome in batch.join()}

    @contextmanager
    def _open_worker(self) -> Iterator[Worker]:
        with self.site.client.for_another_thread() as client:
            yield replace(self.site, client=client).worker()

    def _make_run(self, worker: Worker, first: ActiveCompaction) -> RunDirectory:
        place = RunPlace.of(Storages(), None, first.table_location)
        self.run = RunDirectory(Storages(), place, RunKey.new(run_name(worker.metastore)))
        return self.run


def _table(site: Site, name: str, first: int) -> AcidTable:
    table = site.table(name)
    for value in range(3):
        table.insert(first + value)
    return table


@pytest.fixture
def batch(site: Site, monkeypatch: pytest.MonkeyPatch) -> Batch:
    monkeypatch.setattr(spark_tasks, "udf", FakeUdf)
    return Batch(site)


def rewrite(file: Path, change: Callable[[CompactionPlan], CompactionPlan]) -> None:
    """Change a plan, and leave its seal as it was."""
    document = file.read_bytes()
    plan = CompactionPlan.from_json(content_of(document))
    changed = change(plan).to_json().encode()
    assert changed != content_of(document)
    file.write_bytes(document[: -len(content_of(document))] + changed)


def call_its_rows_aborted(folder: Path, tables: Mapping[str, AcidTable]) -> None:
    rewrite(folder / PLANS[VICTIM], lambda plan: replace(plan, aborted_write_ids=(1, 2, 3)))


def take_its_seal_away(folder: Path, tables: Mapping[str, AcidTable]) -> None:
    file = folder / PLANS[VICTIM]
    file.write_bytes(content_of(file.read_bytes()))


def seal_it_with_another_key(folder: Path, tables: Mapping[str, AcidTable]) -> None:
    file = folder / PLANS[VICTIM]
    file.write_bytes(RunKey.new(folder.name).sealed(file.name, content_of(file.read_bytes())))


def empty_it(folder: Path, tables: Mapping[str, AcidTable]) -> None:
    (folder / PLANS[VICTIM]).write_bytes(b"")


def write_garbage(folder: Path, tables: Mapping[str, AcidTable]) -> None:
    (folder / PLANS[VICTIM]).write_bytes(b"[" * 200_000)


def answer_for_it(folder: Path, tables: Mapping[str, AcidTable]) -> None:
    """An empty base, as if all of its rows were deleted."""
    plan = CompactionPlan.from_json(content_of((folder / PLANS[VICTIM]).read_bytes()))
    result = CompactionResult(plan.attempt, plan.digest, plan.entity, None, (), 0.1)
    (folder / "0001.result.json").write_text(result.to_json())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (call_its_rows_aborted, PLANS[VICTIM]),
        (take_its_seal_away, PLANS[VICTIM]),
        (seal_it_with_another_key, PLANS[VICTIM]),
        (empty_it, PLANS[VICTIM]),
        (write_garbage, PLANS[VICTIM]),
        (answer_for_it, "0001.result.json"),
    ],
)
def test_what_is_changed_about_a_table_is_refused_by_name_and_the_other_is_compacted(
    batch: Batch, change: Change, named: str
) -> None:
    victim = batch.tables[VICTIM]
    before = victim.directories()
    found = batch.play(change)
    assert batch.run is not None
    assert found[MINE].state is OutcomeState.COMPACTED
    assert found[VICTIM].state is OutcomeState.FAILED
    assert f"{batch.run.location}/{named}: has not the seal of its run" in found[VICTIM].message
    assert "Remedy: " in found[VICTIM].message
    assert (victim.values(), victim.directories()) == ([700, 701, 702], before)
    assert batch.tables[MINE].values() == [0, 1, 2]


def test_a_plan_that_names_the_files_of_another_table_shows_none_of_its_rows(batch: Batch) -> None:
    def merge_the_victims_into_mine(folder: Path, tables: Mapping[str, AcidTable]) -> None:
        mine, victim = tables[MINE].folder(), tables[VICTIM].folder()
        assert mine.parent == victim.parent
        files = sorted(victim.glob("delta_*/bucket_*"))
        assert files
        sources = [SourceFile(str(file.relative_to(mine.parent)), file.stat().st_size) for file in files]

        def change(plan: CompactionPlan) -> CompactionPlan:
            bucket = replace(plan.buckets[0], rows=tuple(sources), deletes=())
            staging = f"{mine.name}/{plan.staging}"
            return replace(plan, location=str(mine.parent), staging=staging, buckets=(bucket,))

        rewrite(folder / PLANS[MINE], change)

    found = batch.play(merge_the_victims_into_mine)
    assert (found[MINE].state, found[VICTIM].state) == (OutcomeState.FAILED, OutcomeState.COMPACTED)
    assert f"{PLANS[MINE]}: has not the seal of its run" in found[MINE].message
    assert (batch.tables[MINE].values(), batch.tables[VICTIM].values()) == ([0, 1, 2], [700, 701, 702])


def test_plans_that_were_exchanged_are_both_refused(batch: Batch) -> None:
    def exchange(folder: Path, tables: Mapping[str, AcidTable]) -> None:
        first, second = (folder / name for name in PLANS.values())
        documents = first.read_bytes(), second.read_bytes()
        second.write_bytes(documents[0])
        first.write_bytes(documents[1])

    found = batch.play(exchange)
    assert {outcome.state for outcome in found.values()} == {OutcomeState.FAILED}
    assert all(f"{PLANS[name]}: has not the seal" in outcome.message for name, outcome in found.items())
    assert (batch.tables[MINE].values(), batch.tables[VICTIM].values()) == ([0, 1, 2], [700, 701, 702])


def test_a_false_end_is_passed_over(batch: Batch) -> None:
    def end_it(folder: Path, tables: Mapping[str, AcidTable]) -> None:
        (folder / "end.json").write_bytes(b"0" * HEAD_BYTES)

    assert {outcome.state for outcome in batch.play(end_it).values()} == {OutcomeState.COMPACTED}


def test_a_changed_idle_time_out_ends_the_application_before_it_begins(batch: Batch) -> None:
    def end_it_early(folder: Path, tables: Mapping[str, AcidTable]) -> None:
        file = folder / "batch.json"
        document = file.read_bytes()
        data = json.loads(content_of(document))
        file.write_bytes(
            document[: -len(content_of(document))] + json.dumps({**data, "idle_timeout_seconds": 1e9}).encode()
        )

    before = {name: table.directories() for name, table in batch.tables.items()}
    found = batch.play(end_it_early)
    assert "batch.json: has not the seal of its run" in str(batch.error)
    assert {outcome.state for outcome in found.values()} == {OutcomeState.FAILED}
    assert {name: table.directories() for name, table in batch.tables.items()} == before


def test_a_run_lies_in_no_table_and_nobody_else_may_enter(batch: Batch) -> None:
    seen: list[Path] = []

    def look(folder: Path, tables: Mapping[str, AcidTable]) -> None:
        seen.append(folder)
        assert [place.stat().st_mode & 0o777 for place in (folder, *folder.parents[:2])] == [0o700] * 3
        assert folder.parents[2] == Path.home()
        assert not any(list(table.folder().glob("_acid_runs*")) for table in tables.values())

    batch.play(look)
    assert [folder.exists() for folder in seen] == [False]
