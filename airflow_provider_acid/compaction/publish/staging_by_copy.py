"""Staging directories where there are no renames: their files go, and with them what a zombie could still publish.

The plan takes the place of the directory. It is written last and goes first: a driver looks for it once all files of
the result are written, so that whatever a sealed result names was there when its successor deleted the rest. Nobody
writes such files after it. So a zombie finds no sources, and a copy of which the request was under way is taken by the
store :data:`~..storages.s3_signed.LATE_SECONDS` after their deletion at the latest, for it is bound to its source. The
store may take minutes to carry out what it took, so that the uploads to the journal's names are ended after that wait.

The journal stays to the end, since it tells the next recovery, should this one die, what belongs together. The result
stays until nothing can appear any more.
"""

from __future__ import annotations

import logging
from time import sleep

from airflow_provider_acid.acid.names import is_hidden, marker_files
from airflow_provider_acid.compaction.publish.journal import read_journal
from airflow_provider_acid.compaction.publish.staging import FinishedOutput, staging_name
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.filesystem import ObjectStorage, join
from airflow_provider_acid.plan.exchange import (
    ATTEMPTS_DIRECTORY,
    JOURNAL_FILE,
    OUTPUTS_DIRECTORY,
    PLAN_FILE,
    RESULT_FILE,
)
from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.storages.s3.signed import LATE_SECONDS

log = logging.getLogger(__name__)


class StagingByCopy:
    """See :class:`~.store_rules.Staging`. Two may take over the same: all may be done twice, or be found done."""

    def __init__(self, storage: ObjectStorage) -> None:
        self._storage = storage

    def take_over(self, token: str) -> str | None:
        """By deleting all that could be published; the name stays.

        Where publishing had begun, it waits until it is certain what appeared.
        """
        name = staging_name(token)
        if not self._storage.exists(name):
            return None
        self._storage.delete([f"{name}/{PLAN_FILE}"])
        self._storage.delete([f"{name}/{part}" for part in (ATTEMPTS_DIRECTORY, OUTPUTS_DIRECTORY)])
        result = f"{name}/{RESULT_FILE}"
        # Without a journal no copy was begun, and none will be, for its sources are looked up after that.
        if self._storage.exists(f"{name}/{JOURNAL_FILE}") and self._storage.exists(result):
            sleep(LATE_SECONDS)
            self._end_uploads(name)
        self._storage.delete([result])
        return name

    def _end_uploads(self, name: str) -> None:
        journal = read_journal(self._storage, name)
        if journal is None:
            path = f"{name}/{JOURNAL_FILE}"
            if not self._storage.exists(path):
                # Somebody else took over at the same time, and has done all this.
                return
            raise StorageError(
                join(self._storage.location, path),
                "cannot be read, so that nobody knows what its attempt may yet publish",
                "try again; if that does not help, compact it with the release of this package that wrote it",
            )
        markers = [f"{target}/{marker}" for target in journal.targets for marker in marker_files(target)]
        self._storage.end_uploads([*journal.files, *markers])

    def remove(self, name: str) -> None:
        """The plan first, then data, and last what tells of it.

        Of a published directory, too, data go first: hidden files alone make no base for Trino.
        """
        self._storage.delete([f"{name}/{PLAN_FILE}"])
        found = self._storage.list().below(name)
        data = [file for file in found.files if file.path not in (JOURNAL_FILE, RESULT_FILE)]
        self._storage.delete([f"{name}/{file.path}" for file in data if not is_hidden(file.name)])
        self._storage.delete([name])

    def give_up(self, plan: CompactionPlan) -> None:
        """After a look whether anything has a name of the result's; nothing of its own can appear later.

        Of a copy of which it does not know whether it is there, nobody gives it up.
        """
        found = [target for target in plan.targets if self._storage.exists(target)]
        if found:
            log.warning(
                "%s: %s exists, so that %s is left to the next attempt", plan.entity, ", ".join(found), plan.staging
            )
            return
        self.remove(plan.staging)

    def sealed_output(self, staging: str) -> FinishedOutput | None:
        """None: a name of somebody's own would take a copy of everything."""
        return None

    def adopt(self, finished: FinishedOutput, plan: CompactionPlan) -> bool:
        """Never."""
        return False
