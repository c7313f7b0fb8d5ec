"""Once around a store: what compactions rely on is tried with a few bytes, where their plans and results lie."""

from __future__ import annotations

import re
import secrets
import time
from contextlib import suppress
from typing import cast
from uuid import uuid4

from airflow_provider_acid.compaction.run.run_place import RunPlace
from airflow_provider_acid.exceptions import AcidError, NameTakenError, StorageError
from airflow_provider_acid.filesystem import ObjectStorage, Storage, Storages, join

_TRIAL = re.compile(r"trial\.(\d{13,})\.[0-9a-f]{32}")
"""A directory of one trial, with the time of its beginning; :func:`~.run_place.is_run_of` knows none."""

_FORGOTTEN_MS = 86_400_000
"""Whoever began a trial so long ago died in it."""

_BYTES = 1000
_FIRST, _STAGED, _PUBLISHED = "first", "staging/file", "published/file"


def go_around(storages: Storages, place: RunPlace) -> None:
    """Write a file, read it, publish another as results are published, and remove all of it, also after a failure.

    The directory of all runs is made where it is not there, as by a compaction, and stays.

    :raises AcidError: a step failed, or the store says that it did what it did not do.
    """
    parent = storages.open(place.root)
    place.make(parent)
    _remove_forgotten(parent, place)
    trial = f"{place.path}/trial.{_now_ms()}.{uuid4().hex}"
    try:
        parent.make_private(trial)
        _try(storages.open(join(place.root, trial)))
    except BaseException:
        with suppress(AcidError):
            parent.delete([trial])
        raise
    parent.delete([trial])
    if parent.exists(trial):
        raise _broken(join(place.root, trial), "is still there after it was deleted")


def _try(storage: Storage) -> None:
    data = secrets.token_bytes(_BYTES)
    storage.write_new(_FIRST, data)
    with suppress(NameTakenError):
        storage.write_new(_FIRST, b"")
        raise _broken(join(storage.location, _FIRST), "was replaced by another of its name")
    storage.make_directory(_STAGED.rpartition("/")[0])
    storage.write_new(_STAGED, data)
    if storage.rules.renames:
        storage.publish(_STAGED.rpartition("/")[0], _PUBLISHED.rpartition("/")[0])
    else:
        objects = cast(ObjectStorage, storage)
        objects.publish_files({_STAGED: _PUBLISHED}, lambda: None)
        objects.end_uploads([_PUBLISHED])
        objects.delete_files([_STAGED])
    for path in (_FIRST, _PUBLISHED):
        if storage.read(path) != data:
            raise _broken(join(storage.location, path), "does not hold what was written")
    storage.delete_files([_FIRST])
    if [file.path for file in storage.list().files] != [_PUBLISHED]:
        raise _broken(storage.location, "does not list what is there after a file was written, published and deleted")


def _remove_forgotten(parent: Storage, place: RunPlace) -> None:
    if not parent.exists(place.path):
        return
    found = map(_TRIAL.fullmatch, parent.list(place.path, lambda name: _TRIAL.fullmatch(name) is not None).directories)
    begun_before_ms = _now_ms() - _FORGOTTEN_MS
    parent.delete([f"{place.path}/{trial[0]}" for trial in found if trial and int(trial[1]) < begun_before_ms])


def _now_ms() -> int:
    return int(time.time() * 1000)


def _broken(subject: str, reason: str) -> StorageError:
    return StorageError(subject, reason, "compact nothing there before the store keeps what docs/storage.md lists")
