"""Staging directories where a rename takes a whole directory out of a dead attempt's reach."""

from __future__ import annotations

import uuid

from airflow_provider_acid.compaction.publish.staging import REMOVED_PREFIX, FinishedOutput, staging_name
from airflow_provider_acid.exceptions import ConfigurationError, CorruptFileError, StorageError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.metastore.pools import new_token
from airflow_provider_acid.plan.exchange import (
    JOURNAL_FILE,
    OUTPUTS_DIRECTORY,
    PLAN_FILE,
    REPLACED_FILE,
    RESULT_FILE,
)
from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.storages.small_files import EXCHANGE_FILE_BYTES


class StagingByRename:
    """See :class:`~.store_rules.Staging`.

    A directory belongs to whoever renamed it last: all that is done with it goes by its name, and so fails for
    everybody else.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def take_over(self, token: str) -> str | None:
        """By a rename to a name that nobody had before.

        A name of somebody's own it gets only by :meth:`adopt`, from an attempt whose transaction is open.

        :returns: None also where somebody else was faster.
        """
        old, new = staging_name(token), staging_name(new_token())
        try:
            self._storage.publish(old, new)
        except StorageError:
            if self._storage.exists(old):
                raise
            return None
        return new

    def remove(self, name: str) -> None:
        """By one rename, then delete it: nobody finds a part of it under its old name."""
        removed = REMOVED_PREFIX + uuid.uuid4().hex
        try:
            self._storage.publish(name, removed)
        except StorageError:
            if self._storage.exists(name):
                raise
            return
        self._storage.delete([removed])

    def give_up(self, plan: CompactionPlan) -> None:
        """At once: half of a pair went back into the directory before, or nobody gives it up."""
        self.remove(plan.staging)

    def sealed_output(self, staging: str) -> FinishedOutput | None:
        """See :meth:`~.store_rules.Staging.sealed_output`."""
        storage = self._storage
        try:
            plan = CompactionPlan.from_json(storage.read(f"{staging}/{PLAN_FILE}", EXCHANGE_FILE_BYTES))
            result = CompactionResult.from_json(storage.read(f"{staging}/{RESULT_FILE}", EXCHANGE_FILE_BYTES))
        except (StorageError, ConfigurationError, CorruptFileError):
            return None
        if result.error is not None or (result.attempt, result.plan_digest) != (plan.attempt, plan.digest):
            return None
        # The directory was moved since the plan was written.
        outputs = (f"{staging}/{OUTPUTS_DIRECTORY}/{output.kind.value}" for output in plan.outputs)
        return FinishedOutput(plan, result, staging) if all(map(storage.exists, outputs)) else None

    def adopt(self, finished: FinishedOutput, plan: CompactionPlan) -> bool:
        """By a rename; what the dead attempt noted about publishing does not hold for this one."""
        try:
            self._storage.publish(finished.staging, plan.staging)
        except StorageError:
            if self._storage.exists(finished.staging):
                raise
            return False
        self._storage.delete([f"{plan.staging}/{name}" for name in (JOURNAL_FILE, REPLACED_FILE)])
        return True
