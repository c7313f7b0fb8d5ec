"""Staging directories: where an attempt works, inside the partition, so that TRUNCATE and DROP remove them too."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from airflow_provider_acid.acid.exchange import (
    ATTEMPTS_DIRECTORY,
    JOURNAL_FILE,
    OUTPUTS_DIRECTORY,
    PLAN_FILE,
    REPLACED_FILE,
    RESULT_FILE,
)
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.plan import CompactionPlan
from airflow_provider_acid.acid.result import CompactionResult
from airflow_provider_acid.exceptions import ConfigurationError, StorageError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.pools import new_token

STAGING_PREFIX = "_acid_compaction_"
REMOVED_PREFIX = "_acid_compaction_removed_"
"""Begin of the names of directories that are being deleted."""

_STAGING = re.compile(rf"{STAGING_PREFIX}([0-9a-f]{{16}})")


def staging_name(token: str) -> str:
    """Name of the staging directory of the attempt ``token``; hidden from every reader by its first character."""
    return STAGING_PREFIX + token


def staging_tokens(listing: Listing) -> tuple[str, ...]:
    """Tokens of the attempts whose staging directories lie in a partition."""
    return tuple(match[1] for name in listing.directories if (match := _STAGING.fullmatch(name)))


def take_over(storage: Storage, token: str) -> str | None:
    """Take a dead attempt's staging directory out of its reach, by a rename to a name that nobody had before.

    The directory belongs to whoever renamed it last: all that is done with it goes by its name, and so fails for
    everybody else. A name of somebody's own it gets only by :func:`adopt`, from an attempt whose transaction is open.

    :returns: its new name; None where there is none (any more), because somebody else was faster, for example.
    """
    old, new = staging_name(token), staging_name(new_token())
    try:
        storage.publish(old, new)
    except StorageError:
        if storage.exists(old):
            raise
        return None
    return new


def remove_whole(storage: Storage, name: str) -> None:
    """Take a directory out of everybody's reach by one rename, then delete it.

    Nobody, be it a reader or an attempt that wakes up, finds a part of it under its old name. Missing is no error, nor
    is that somebody else removes it at the same time.
    """
    removed = REMOVED_PREFIX + uuid.uuid4().hex
    try:
        storage.publish(name, removed)
    except StorageError:
        if storage.exists(name):
            raise
        return
    storage.delete([removed])


def finish_removals(storage: Storage, listing: Listing) -> tuple[str, ...]:
    """Delete what a dead process had already taken out of reach; the names."""
    names = tuple(name for name in listing.directories if name.startswith(REMOVED_PREFIX) and "/" not in name)
    storage.delete(names)
    return names


def open_staging(storage: Storage, plan: CompactionPlan) -> None:
    """Make the staging directory of a plan and put the plan into it.

    Only this function makes directories: a task of a dead attempt whose staging was removed finds no place to
    write to.
    """
    storage.make_directory(f"{plan.staging}/{ATTEMPTS_DIRECTORY}")
    for output in plan.outputs:
        storage.make_directory(plan.staged(output.kind))
    storage.write_new(f"{plan.staging}/{PLAN_FILE}", plan.to_json().encode())


@dataclass(frozen=True)
class FinishedOutput:
    """Output of a dead attempt that was complete.

    :param staging: name of the directory it lies in; nobody's, so that another recovery may take it meanwhile.
    """

    plan: CompactionPlan
    result: CompactionResult
    staging: str


def sealed_output(storage: Storage, staging: str) -> FinishedOutput | None:
    """What a dead attempt finished but did not publish; None where it finished nothing that can be read."""
    try:
        plan = CompactionPlan.from_json(storage.read(f"{staging}/{PLAN_FILE}").decode())
        result = CompactionResult.from_json(storage.read(f"{staging}/{RESULT_FILE}").decode())
    except (StorageError, ConfigurationError, UnicodeDecodeError):
        return None
    if result.error is not None or result.attempt != plan.attempt:
        return None
    # The directory was moved since the plan was written.
    outputs = (f"{staging}/{OUTPUTS_DIRECTORY}/{output.kind.value}" for output in plan.outputs)
    return FinishedOutput(plan, result, staging) if all(map(storage.exists, outputs)) else None


def adopt(storage: Storage, finished: FinishedOutput, plan: CompactionPlan) -> bool:
    """Make a finished output that of ``plan``, whose transaction is open; False where somebody else took it.

    What its attempt noted about publishing does not hold for this one.
    """
    try:
        storage.publish(finished.staging, plan.staging)
    except StorageError:
        if storage.exists(finished.staging):
            raise
        return False
    storage.delete([f"{plan.staging}/{name}" for name in (JOURNAL_FILE, REPLACED_FILE)])
    return True
