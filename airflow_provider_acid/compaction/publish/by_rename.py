"""Where a rename takes a whole directory to its new name, or out of a dead attempt's reach.

One directory is published by one; a delta and a delete delta by two, noted before in a journal.
"""

from __future__ import annotations

import uuid

from airflow_provider_acid.acid.names import is_hidden, marker_files
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.publish.discard import Discard
from airflow_provider_acid.compaction.publish.journal import PublicationJournal, write_journal
from airflow_provider_acid.compaction.publish.staged_files import check_found, check_markers, rejected, written_files
from airflow_provider_acid.compaction.publish.staging import REMOVED_PREFIX, FinishedOutput, staging_name
from airflow_provider_acid.compaction.steps import Step, StepListener
from airflow_provider_acid.exceptions import (
    AcidError,
    ConfigurationError,
    CorruptFileError,
    HalfPublishedError,
    StorageError,
)
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.metastore.pools import new_token
from airflow_provider_acid.plan.exchange import (
    JOURNAL_FILE,
    OUTPUTS_DIRECTORY,
    PLAN_FILE,
    REPLACED_FILE,
    RESULT_FILE,
    UNDO_FILE,
)
from airflow_provider_acid.plan.plan import CompactionPlan, OutputDirectory
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.storages.small_files import EXCHANGE_FILE_BYTES


class ByRename:
    """See :class:`~.publisher.Publisher`.

    A staging directory belongs to whoever renamed it last: all that is done with it goes by its name, and so fails for
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

    def finished_output(self, staging: str) -> FinishedOutput | None:
        """See :meth:`~.publisher.Publisher.finished_output`."""
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
        self._storage.delete([f"{plan.staging}/{name}" for name in (JOURNAL_FILE, REPLACED_FILE, UNDO_FILE)])
        return True

    def discard(self) -> Discard:
        """Filled by renames."""
        return Discard(self._storage)

    def check_staged(self, plan: CompactionPlan, result: CompactionResult, output: OutputDirectory) -> None:
        """The driver has put the files together under their names."""
        path = plan.staged(output.kind)
        found = self._storage.list(path)
        subject = join(self._storage.location, path)
        if found.directories:
            raise rejected(subject, f"holds the directories {', '.join(found.directories)}")
        written = {file.path: file.size_bytes for file in found.files if not is_hidden(file.path)}
        reported = {file.name: file.size_bytes for file in written_files(result, output.kind) if file.name is not None}
        check_found(subject, written, reported)
        hidden = {file.path for file in found.files if is_hidden(file.path)}
        check_markers(subject, hidden, set(marker_files(output.target)))

    def shows_parts(self, result: CompactionResult) -> bool:
        """Never: a directory appears at once."""
        return False

    def publish(self, active: ActiveCompaction, result: CompactionResult, on_step: StepListener) -> None:
        """One rename, or two."""
        plan = active.plan
        if len(plan.outputs) == 1:
            self._storage.publish(plan.staged(plan.outputs[0].kind), plan.targets[0])
            return
        transaction = active.transaction
        journal = PublicationJournal(plan.targets, transaction.txn_id, transaction.exclusive_lock_id)
        write_journal(self._storage, plan.staging, journal)
        on_step(Step.JOURNALLED, active.entity)
        first, second = plan.outputs
        try:
            self._storage.publish(plan.staged(first.kind), first.target)
            on_step(Step.FIRST_PUBLISHED, active.entity)
            self._storage.publish(plan.staged(second.kind), second.target)
        except StorageError as error:
            self._take_back(plan, error)
            raise

    def _take_back(self, plan: CompactionPlan, error: AcidError) -> None:
        """Undo the first rename, while the lock is held, by renaming back.

        Never by deleting: on Hive 3, where names tell no transaction, a successor's result may have that name by now.
        The successor moved the staging directory, so that for a zombie who wakes up this rename has no target.

        :raises HalfPublishedError: that cannot be done.
        """
        storage = self._storage
        try:
            for output in plan.outputs:
                if not storage.exists(plan.staged(output.kind)) and storage.exists(output.target):
                    storage.publish(output.target, plan.staged(output.kind))
        except StorageError as again:
            raise HalfPublishedError(
                str(plan.entity),
                f"only a part of {', '.join(plan.targets)} was published ({error}), and could not be taken back "
                f"({again})",
                "run the compaction of this partition again, which does it first; until then readers that ignore a "
                "compaction's transaction, as Trino does, see wrong rows",
            ) from error
