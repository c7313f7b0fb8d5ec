"""Staging directories: where an attempt works, inside the partition, so that TRUNCATE and DROP remove them too."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from airflow_provider_acid.acid.exchange import ATTEMPTS_DIRECTORY, OUTPUTS_DIRECTORY, PLAN_FILE, RESULT_FILE
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.plan import CompactionPlan
from airflow_provider_acid.acid.result import CompactionResult
from airflow_provider_acid.exceptions import ConfigurationError, StorageError
from airflow_provider_acid.filesystem import Storage

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


def remove_whole(storage: Storage, name: str) -> None:
    """Take a directory out of everybody's reach by one rename, then delete it.

    Nobody, be it a reader or an attempt that wakes up, finds a part of it under its old name. Missing is no error.
    """
    if storage.exists(name):
        removed = REMOVED_PREFIX + uuid.uuid4().hex
        storage.publish(name, removed)
        storage.delete([removed])


def finish_removals(storage: Storage, listing: Listing) -> None:
    """Delete what a dead process had already taken out of reach."""
    storage.delete([name for name in listing.directories if name.startswith(REMOVED_PREFIX) and "/" not in name])


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
    """Output of a dead attempt that was complete; it lies in the staging directory of ``plan``."""

    plan: CompactionPlan
    result: CompactionResult


def sealed_output(storage: Storage, token: str) -> FinishedOutput | None:
    """What a dead attempt finished but did not publish; None where it finished nothing that can be read."""
    name = staging_name(token)
    try:
        plan = CompactionPlan.from_json(storage.read(f"{name}/{PLAN_FILE}").decode())
        result = CompactionResult.from_json(storage.read(f"{name}/{RESULT_FILE}").decode())
    except (StorageError, ConfigurationError, UnicodeDecodeError):
        return None
    if result.error is not None or result.attempt != plan.attempt:
        return None
    # The directory may have been moved to the name of another attempt since the plan was written.
    outputs = (f"{name}/{OUTPUTS_DIRECTORY}/{output.kind.value}" for output in plan.outputs)
    return FinishedOutput(plan, result) if all(map(storage.exists, outputs)) else None
