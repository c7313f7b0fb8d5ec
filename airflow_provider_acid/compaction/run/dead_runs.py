"""Removes run directories whose operator died in the middle of its work.

Operators of several metastores may share a place; whether an operator lives is known to its own metastore alone, which
is named in the run's name. What the plans of a run say of themselves is read without the run's key, which went with
the operator: nothing follows from it but that a directory goes to which nobody else may write.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

from airflow_provider_acid.acid import json_fields as fields
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.sealing import content_of
from airflow_provider_acid.compaction.run.run_place import RunPlace, is_run_of
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.exceptions import AcidError
from airflow_provider_acid.filesystem import Storage, Storages, join
from airflow_provider_acid.plan import exchange
from airflow_provider_acid.plan.plan import FORMAT_VERSION
from airflow_provider_acid.storages.small_files import EXCHANGE_FILE_BYTES

log = logging.getLogger(__name__)


class DeadRuns:
    """Looks once in each place, before the batch that asks makes a run directory of its own there.

    :param look: the tokens of all attempts with living transactions; asked after the listing, since whoever handed out
        a plan had opened its transaction before.
    :param metastore: the id of the database of the one that is asked; None where it does not say.
    :param looked_at: where all who are given the same have looked.
    """

    def __init__(
        self,
        storages: Storages,
        look: Callable[[], Collection[str]],
        metastore: Callable[[], str | None],
        looked_at: set[RunPlace] | None = None,
    ) -> None:
        self._storages = storages
        self._look = look
        self._metastore = metastore
        self._looked_at = set() if looked_at is None else looked_at

    def remove(self, run_directory: str | None, table_location: str) -> None:
        """Remove those in a place (see :meth:`.RunPlace.of`), the first time it is asked to.

        What cannot be understood, as that of another release, is left alone with a warning; what is another
        metastore's, or of one that nobody knows, without.

        :raises MetastoreError: nobody says who is alive.
        """
        try:
            with Supervised(run_directory or table_location):
                place = RunPlace.of(self._storages, run_directory, table_location)
                if place in self._looked_at:
                    return
                self._looked_at.add(place)
                storage = self._storages.open(place.root)
                listing = _listing(storage, place)
        except AcidError as error:
            log.warning("Run directories of dead operators are not looked for: %s", error)
            return
        runs = self._own([name for name in listing.directories if "/" not in name], place)
        if not runs:
            return
        living = self._look()
        for run in runs:
            path = f"{place.path}/{run}"
            try:
                with Supervised(join(place.location, run)):
                    if _is_dead(storage, path, listing.below(run), living):
                        storage.delete([path])
            except AcidError as error:
                log.warning("%s is left alone: %s", join(place.location, run), error)

    def _own(self, runs: Sequence[str], place: RunPlace) -> Sequence[str]:
        """Those of the own metastore."""
        metastore = self._metastore() if runs else None
        own = [] if metastore is None else [run for run in runs if is_run_of(run, metastore)]
        for run in sorted(set(runs).difference(own)):
            log.debug("%s is left to its own metastore", join(place.location, run))
        return own


def _listing(storage: Storage, place: RunPlace) -> Listing:
    if not storage.exists(place.path):
        return Listing()
    place.check(storage)
    return storage.list(place.path)


def _is_dead(storage: Storage, place: str, listing: Listing, living: Collection[str]) -> bool:
    """Whether it was at work, and none of its attempts is alive; of a living run, as a rule, one plan is read.

    So it is where nobody lives at all: no plan could name him, and one is read to know that this release wrote it.
    """
    named = [found for file in listing.files if (found := exchange.parse_item_file(file.path)) is not None]
    plans, results = ({item for item, kind in named if kind == wanted} for wanted in (exchange.PLAN, exchange.RESULT))
    unanswered = plans - results
    # With all plans done and more to come, the operator may be about to begin the next partition.
    if not unanswered and exchange.END_FILE not in {file.path for file in listing.files}:
        return False
    # What is merged just now is most likely to be alive; then what waits for a lock to be published.
    items = (*unanswered, *sorted(plans & results)[::-1])
    return not any(_attempt(storage, place, item) in living for item in (items if living else items[:1]))


def _attempt(storage: Storage, place: str, item: int) -> str:
    path = f"{place}/{exchange.item_file(item, exchange.PLAN)}"
    content = content_of(storage.read(path, EXCHANGE_FILE_BYTES))
    return fields.text(fields.versioned(content, join(storage.location, path), FORMAT_VERSION), "attempt")
