"""Operators of two metastores that share one run directory remove their own dead runs, and no living one."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from airflow_provider_acid.acid.sealing import RunKey
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.recover.recovery import Recovery
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.run.run_place import RUNS_DIRECTORY, RunPlace, run_name
from airflow_provider_acid.compaction.work.worker import LookedAt
from airflow_provider_acid.filesystem import Storages
from tests.integration.compaction_site import Site


@dataclass
class Operator:
    """One metastore's operator, with a plan handed out in a run of its own."""

    site: Site
    active: ActiveCompaction
    run: Path

    @classmethod
    def at_work(cls, site: Site, runs: Path) -> Operator:
        table = site.table("t")
        for value in range(2):
            table.insert(value)
        active = site.begin(table.entity())
        key = RunKey.new(run_name(site.client.database_uuid()))
        run = RunDirectory(Storages(), RunPlace.in_directory(str(runs)), key)
        run.put_plan(0, active.plan)
        return cls(site, active, Path(run.location))

    def look(self, runs: Path, looked_at: LookedAt | None = None) -> None:
        """What a batch, or the housekeeping, does first."""
        settings = replace(self.site.settings, run_directory=str(runs))
        places, owners = (looked_at.run_places, looked_at.owners) if looked_at else (None, ())
        recovery = Recovery(self.site.client, self.site.queue, settings, run_places=places, owners=owners)
        recovery.remove_dead_runs(self.active.table_location)

    def die(self) -> None:
        self.site.worker().abandon(self.active, "killed")


@pytest.fixture
def operators(hive_4_site: Site, hive_3_site: Site, tmp_path: Path) -> tuple[Operator, Operator]:
    return Operator.at_work(hive_4_site, tmp_path), Operator.at_work(hive_3_site, tmp_path)


def test_neither_removes_the_others_living_run_and_each_removes_its_own_dead_one(
    operators: tuple[Operator, Operator], tmp_path: Path
) -> None:
    for one in operators:
        one.look(tmp_path)
        assert [other.run.exists() for other in operators] == [True, True]
    for one, other in (operators, operators[::-1]):
        one.die()
        other.look(tmp_path)
        assert one.run.exists()
        one.look(tmp_path)
        assert not one.run.exists()
    assert not any((tmp_path / RUNS_DIRECTORY).iterdir())


@pytest.mark.parametrize(("identity", "stays"), [("task", False), ("another task", True)])
def test_the_run_of_a_former_try_goes_though_its_transactions_look_alive(
    hive_4_site: Site, tmp_path: Path, identity: str, stays: bool
) -> None:
    operator = Operator.at_work(hive_4_site, tmp_path)
    operator.look(tmp_path, LookedAt.of_task(identity, [operator.active.plan.entity]))
    assert operator.run.exists() == stays


def test_a_batchs_own_run_is_not_taken_for_a_former_trys(hive_4_site: Site, tmp_path: Path) -> None:
    operator = Operator.at_work(hive_4_site, tmp_path)
    own = LookedAt.of_task("task", [operator.active.plan.entity])
    own.take(RunPlace.in_directory(str(tmp_path)))
    operator.look(tmp_path, own)
    assert operator.run.exists()


def test_each_metastore_has_an_id_of_its_own_and_keeps_it(operators: tuple[Operator, Operator]) -> None:
    ids = [one.site.client.database_uuid() for one in operators]
    assert len(set(ids)) == 2
    assert all(re.fullmatch(r"[0-9a-f-]{36}", str(id)) for id in ids)
    for one, found in zip(operators, ids, strict=True):
        with one.site.client.for_another_thread() as client:
            assert client.database_uuid() == found
