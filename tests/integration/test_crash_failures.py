"""Failures without a death: the network goes away in mid-job, answers get lost, the disk is full."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.exceptions import AcidError, StorageError
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.compaction_chain import Chain
from tests.harness.network_proxy import NetworkProxy
from tests.integration.compaction_site import AcidTable, Site

WORKER_STEPS = [step for step in Step if list(Step).index(step) <= list(Step).index(Step.STAGING_REMOVED)]


@pytest.fixture
def table(site: Site) -> AcidTable:
    table = site.table()
    for value in (1, 2, 3):
        table.insert(value)
    return table


@pytest.fixture
def proxy(site: Site) -> Iterator[NetworkProxy]:
    with NetworkProxy(site.server.host, site.server.port) as proxy:
        yield proxy


def chain_of(table: AcidTable, proxy: NetworkProxy | None = None) -> Chain:
    chain = Chain.on(table.site.server, table.entity())
    return replace(chain, host=proxy.host, port=proxy.port) if proxy else chain


def check_finished(table: AcidTable) -> None:
    table.site.clean(table.entity())
    (name,) = table.directories()
    assert name.startswith("base_")
    assert table.values() == [1, 2, 3]
    assert all(row.state.is_terminal for row in table.site.rows(table.entity()))
    assert not table.site.admin.transactions().open


@pytest.mark.parametrize("step", WORKER_STEPS)
def test_an_answer_that_gets_lost_after_any_step(table: AcidTable, proxy: NetworkProxy, step: Step) -> None:
    """The outcome may be a failure, never a wrong table; the next try ends it."""

    def lose_answer(passed: Step, _: Entity) -> None:
        if passed is step:
            proxy.lose_answer()

    with suppress(AcidError):
        chain_of(table, proxy).compact(lose_answer)
    assert table.values() == [1, 2, 3]
    assert not chain_of(table).compact().outcome.state.is_failure
    check_finished(table)


def test_a_commit_whose_answer_got_lost_is_known_to_be_done(table: AcidTable, proxy: NetworkProxy) -> None:
    def lose_answer(passed: Step, _: Entity) -> None:
        if passed is Step.PUBLISHED:
            proxy.lose_answer()

    assert chain_of(table, proxy).compact(lose_answer).outcome.state is OutcomeState.COMPACTED
    check_finished(table)


@pytest.mark.parametrize("step", [Step.STAGED, Step.FENCED, Step.PUBLISHED, Step.COMMITTED])
def test_a_network_that_stays_away_after_a_step(table: AcidTable, proxy: NetworkProxy, step: Step) -> None:
    def cut(passed: Step, _: Entity) -> None:
        if passed is step:
            proxy.refuse(True)

    assert chain_of(table, proxy).compact(cut).outcome.state is OutcomeState.FAILED
    assert table.values() == [1, 2, 3]
    assert chain_of(table).compact().outcome.state is OutcomeState.COMPACTED
    check_finished(table)


@pytest.mark.parametrize("name", ["plan.json", "bucket_00000", "_metadata_acid", "result.json"])
def test_a_disk_that_is_full_leaves_nothing_behind(
    table: AcidTable, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = table.fingerprint()
    create = LocalStorage.create

    def fail(storage: LocalStorage, path: str) -> object:
        if name in path:
            raise StorageError(path, "no space left on device", "make room")
        return create(storage, path)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "create", fail)
        outcome = chain_of(table).compact().outcome
    assert outcome.state is OutcomeState.FAILED
    assert "no space left on device" in outcome.message
    assert table.fingerprint() == before
    (row,) = table.site.rows(table.entity())
    assert row.state is CompactionState.FAILED
    assert chain_of(table).compact().outcome.state is OutcomeState.COMPACTED
    check_finished(table)


def test_a_cleaner_whose_storage_fails_in_the_middle_keeps_the_row(
    table: AcidTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain_of(table).compact()
    delete = LocalStorage.delete

    def fail(storage: LocalStorage, paths: tuple[str, ...]) -> None:
        first, *_ = paths
        delete(storage, [first])
        raise StorageError(first, "the storage is gone", "bring it back")

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "delete", fail)
        (cleaning,) = chain_of(table).clean()
    assert cleaning.state is CleaningState.FAILED
    assert table.values() == [1, 2, 3]
    (row,) = table.site.rows(table.entity())
    assert row.state is CompactionState.READY_FOR_CLEANING
    check_finished(table)
