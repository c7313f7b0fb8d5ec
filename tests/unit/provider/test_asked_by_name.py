"""A table that somebody names is looked at as a whole, whatever keeps others away: in a task, a command, the doctor."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowSkipException

from airflow_provider_acid import table_commands
from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.compaction.evaluate.initiator import Evaluation
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.doctor import table_checks
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.operators import table_plan

CAREFUL = CompactionSettings(candidates=Candidates.WRITTEN, override_no_auto_compaction=False)


class Endpoint:
    storages = Storages()

    @contextmanager
    def connect(self) -> Iterator[tuple[object, object]]:
        yield SimpleNamespace(), SimpleNamespace()


def by_task(endpoint: Any) -> None:
    with pytest.raises(AirflowSkipException):
        table_plan.AcidTablePlanOperator(task_id="plan", database="d", table="t").execute({})


def by_command(endpoint: Any) -> None:
    table_commands.plan(endpoint, CAREFUL, Namespace(table="d.t", partition=None, type="auto"))


def by_doctor(endpoint: Any) -> None:
    site: Any = SimpleNamespace(settings=CAREFUL, client=None, queue=None)
    assert list(table_checks._due_by_hand(site, ["d.t"])) == []


@pytest.mark.parametrize("way", [by_task, by_command, by_doctor])
def test_a_table_that_is_named_is_looked_at_as_a_whole(
    monkeypatch: pytest.MonkeyPatch, way: Callable[[Any], None]
) -> None:
    asked: list[CompactionSettings] = []

    def initiator(client: object, queue: object, settings: CompactionSettings, **more: object) -> Any:
        asked.append(settings)
        return SimpleNamespace(evaluate=lambda selection: Evaluation())

    monkeypatch.setattr(AcidMetastoreHook, "endpoint", lambda hook: Endpoint())
    monkeypatch.setattr(table_plan, "configured_settings", lambda: CAREFUL)
    for module in (table_plan, table_commands, table_checks):
        monkeypatch.setattr(module, "Initiator", initiator)
    way(Endpoint())
    named = replace(CAREFUL, candidates=Candidates.ALL, override_no_auto_compaction=True)
    assert asked == [named]
