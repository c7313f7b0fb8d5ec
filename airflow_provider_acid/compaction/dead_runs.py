"""Removes run directories whose operator died in the middle of its work."""

from __future__ import annotations

import logging
from collections.abc import Callable

from airflow_provider_acid.acid import exchange
from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.plan import FORMAT_VERSION
from airflow_provider_acid.compaction.run_directory import RUNS_DIRECTORY
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.exceptions import AcidError
from airflow_provider_acid.filesystem import Storage, Storages, join
from airflow_provider_acid.storages.small_files import EXCHANGE_FILE_BYTES

log = logging.getLogger(__name__)

IsAlive = Callable[[str], bool]
"""Whether the attempt of a token has a living transaction."""


class DeadRuns:
    """Looks once in each place, before the batch that asks makes a run directory of its own there.

    :param look: who is alive; asked after the listing, since whoever handed out a plan had opened its transaction
        before.
    """

    def __init__(self, storages: Storages, look: Callable[[], IsAlive]) -> None:
        self._storages = storages
        self._look = look
        self._looked_at: set[str] = set()

    def remove(self, parent: str) -> None:
        """Remove those in ``parent``, the first time it is asked to.

        What cannot be understood, as that of another release, is left alone with a warning.

        :raises MetastoreError: nobody says who is alive.
        """
        if parent in self._looked_at:
            return
        self._looked_at.add(parent)
        try:
            with Supervised(parent):
                storage = self._storages.open(parent)
                listing = storage.list(RUNS_DIRECTORY) if storage.exists(RUNS_DIRECTORY) else Listing()
        except AcidError as error:
            log.warning("Run directories of dead operators are not looked for: %s", error)
            return
        runs = [name for name in listing.directories if "/" not in name]
        if not runs:
            return
        is_alive = self._look()
        for run in runs:
            place = f"{RUNS_DIRECTORY}/{run}"
            try:
                with Supervised(join(parent, place)):
                    if _is_dead(storage, place, listing.below(run), is_alive):
                        storage.delete([place])
            except AcidError as error:
                log.warning("%s is left alone: %s", join(parent, place), error)


def _is_dead(storage: Storage, place: str, listing: Listing, is_alive: IsAlive) -> bool:
    """Whether it was at work, and none of its attempts is alive; of a living run, as a rule, one plan is read."""
    plans, skips, results = (_items(listing, kind) for kind in (exchange.PLAN, exchange.SKIP, exchange.RESULT))
    unanswered = plans - results
    # With all plans done and more to come, the operator may be about to begin the next partition.
    if not plans or not (unanswered or len(plans | skips) == _partitions(storage, place)):
        return False
    # What is merged just now is most likely to be alive; then what waits for a lock to be published.
    return not any(is_alive(_attempt(storage, place, item)) for item in (*unanswered, *sorted(plans & results)[::-1]))


def _items(listing: Listing, kind: str) -> set[int]:
    named = (exchange.parse_item_file(file.path) for file in listing.files)
    return {item[0] for item in named if item is not None and item[1] == kind}


def _partitions(storage: Storage, place: str) -> int:
    path = f"{place}/{exchange.BATCH_FILE}"
    return fields.integer(
        fields.versioned(storage.read(path), join(storage.location, path), FORMAT_VERSION), "partitions"
    )


def _attempt(storage: Storage, place: str, item: int) -> str:
    path = f"{place}/{exchange.item_file(item, exchange.PLAN)}"
    document = storage.read(path, EXCHANGE_FILE_BYTES)
    return fields.text(fields.versioned(document, join(storage.location, path), FORMAT_VERSION), "attempt")
