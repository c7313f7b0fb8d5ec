"""Staging directories: where an attempt works, inside the partition, so that TRUNCATE and DROP remove them too."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.exceptions import ConfigurationError, CorruptFileError, StorageError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.plan.exchange import ATTEMPTS_DIRECTORY, PLAN_FILE
from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.storages.small_files import EXCHANGE_FILE_BYTES

log = logging.getLogger(__name__)

T = TypeVar("T")

STAGING_PREFIX = "_acid_compaction_"
REMOVED_PREFIX = "_acid_compaction_removed_"
"""Begin of the names of directories that are being deleted."""

_STAGING = re.compile(rf"{STAGING_PREFIX}([0-9a-f]{{16}})")


def staging_name(token: str) -> str:
    """Name of the staging directory of the attempt ``token``; hidden from every reader by its first character."""
    return STAGING_PREFIX + token


def staging_tokens(listing: Listing) -> tuple[str, ...]:
    """Tokens of the attempts whose staging directories lie in a partition."""
    return tuple(token for name in listing.directories if (token := token_of_staging(name)) is not None)


def token_of_staging(name: str) -> str | None:
    """The token of the attempt whose staging directory has that name; None where it is no such name."""
    match = _STAGING.fullmatch(name)
    return None if match is None else match[1]


def finish_removals(storage: Storage, listing: Listing) -> tuple[str, ...]:
    """Delete what a dead process had already taken out of reach; the names."""
    names = tuple(name for name in listing.directories if name.startswith(REMOVED_PREFIX) and "/" not in name)
    storage.delete(names)
    return names


def open_staging(storage: Storage, plan: CompactionPlan) -> None:
    """Make the staging directory of a plan and put the plan into it.

    Only this function makes directories: a task of a dead attempt whose staging was removed finds no place to
    write to. The plan comes last, for where there are no directories it takes their place.
    """
    storage.make_directory(f"{plan.staging}/{ATTEMPTS_DIRECTORY}")
    for output in plan.outputs:
        storage.make_directory(plan.staged(output.kind))
    storage.write_new(f"{plan.staging}/{PLAN_FILE}", plan.to_json().encode())


def read_note(storage: Storage, path: str, parse: Callable[[bytes], T]) -> T | None:
    """What a note in a staging directory says; None where there is none, or none that can be understood.

    :param parse: reads its document; raises a ConfigurationError or CorruptFileError of one that it does not know.
    :raises StorageError: it exists but cannot be read now.
    """
    try:
        return parse(storage.read(path, EXCHANGE_FILE_BYTES))
    except StorageError:
        # Looked for afterwards: somebody else may be through with it just now.
        if storage.exists(path):
            raise
        return None
    except (ConfigurationError, CorruptFileError) as error:
        log.warning("%s is passed over: %s", join(storage.location, path), error)
        return None


@dataclass(frozen=True)
class FinishedOutput:
    """Output of a dead attempt that was complete.

    :param staging: name of the directory it lies in; nobody's, so that another recovery may take it meanwhile.
    """

    plan: CompactionPlan
    result: CompactionResult
    staging: str
