"""The doctor's round trip: a store that keeps its promises is well, and of one that does not nothing is left there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_acid.compaction.run import round_trip
from airflow_provider_acid.compaction.run.round_trip import go_around
from airflow_provider_acid.compaction.run.run_place import RunPlace
from airflow_provider_acid.exceptions import AcidError
from airflow_provider_acid.filesystem import Storages
from tests.harness.s3_server import S3Server
from tests.storage.s3_site import Site, temporary
from tests.storage.stores import NetworkStore, Store
from tests.storage.test_health_location import StoragesOf

DAY_MS = 86_400_000


def try_it(store: Store) -> None:
    go_around(StoragesOf(store), RunPlace(store.location, "runs", ("runs",)))


def left(store: Store) -> set[str]:
    return store.names() - {"runs/"}


def test_a_store_that_keeps_its_promises_is_well_again_and_again(store: Store) -> None:
    for _ in range(2):
        try_it(store)
        assert left(store) == set()
    assert ("runs/" in store.names()) == store.promises.directories


def nothing(*_: object) -> None:
    pass


def another(*_: object) -> bytes:
    return b"something else"


@pytest.mark.parametrize(
    ("steps", "does", "told"),
    [
        (("write_new",), nothing, "was replaced by another of its name"),
        (("publish", "publish_files"), nothing, "runs/trial"),
        (("read",), another, "does not hold what was written"),
        (("delete_files",), nothing, "does not list what is there"),
    ],
)
def test_a_step_that_a_store_does_not_do_is_told_and_nothing_is_left(
    store: Store, monkeypatch: pytest.MonkeyPatch, steps: tuple[str, ...], does: Callable[..., Any], told: str
) -> None:
    for step in steps:
        if hasattr(type(store.storage), step):
            monkeypatch.setattr(type(store.storage), step, does)
    with pytest.raises(AcidError, match=told):
        try_it(store)
    monkeypatch.undo()
    assert left(store) == set()


def test_a_store_that_does_not_delete_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    delete = type(store.storage).delete

    def delete_no_directory(storage: Any, paths: list[str]) -> None:
        delete(storage, [path for path in paths if "trial." not in path])

    monkeypatch.setattr(type(store.storage), "delete", delete_no_directory)
    with pytest.raises(AcidError, match="is still there after it was deleted"):
        try_it(store)
    monkeypatch.setattr(type(store.storage), "delete", delete)
    assert left(store) != set()
    # A day later the next one removes it.
    now_ms = round_trip._now_ms()
    monkeypatch.setattr(round_trip, "_now_ms", lambda: now_ms + DAY_MS + 60_000)
    store.plant({"runs/other/0001.plan.json": b"{}"})
    try_it(store)
    assert {name for name in left(store) if not name.endswith("/")} == {"runs/other/0001.plan.json"}


@pytest.mark.promise("network")
def test_a_store_that_does_not_answer_is_told(store: NetworkStore) -> None:
    with store.refusing(), pytest.raises(AcidError, match=re.escape(store.location)):
        try_it(store)
    try_it(store)
    assert left(store) == set()


@pytest.mark.promise("rights")
def test_a_directory_that_this_user_may_not_write_into_is_told(store: Store) -> None:
    store.plant_directory("runs")
    with store.without_rights("runs"), pytest.raises(AcidError, match=r"runs"):
        try_it(store)
    assert left(store) == set()


RIGHTS = ("s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucketMultipartUploads")


@pytest.mark.needs_minio
@pytest.mark.parametrize("lacking", RIGHTS)
def test_a_right_on_s3_that_nobody_can_ask_for_is_missed(s3: S3Server, lacking: str) -> None:
    """Of the store itself nobody is told it: :meth:`~S3Storage.may_change` does not know."""
    site = Site(s3)
    key = temporary(site, *(right for right in RIGHTS if right != lacking))
    storages = Storages((replace(site.options, credentials=key),))
    assert storages.open(site.location).may_change() is None
    with pytest.raises(AcidError, match="AccessDenied|ACCESS_DENIED"):
        go_around(storages, RunPlace.of(storages, None, site.location))
    everything = Storages((replace(site.options, credentials=temporary(site, *RIGHTS)),))
    go_around(everything, RunPlace.of(everything, None, site.location))
