"""Publishing by renames: one directory by one; a delta and a delete delta by two, noted before in a journal."""

from __future__ import annotations

from airflow_provider_acid.acid.names import is_hidden, marker_files
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.publish.journal import PublicationJournal, write_journal
from airflow_provider_acid.compaction.publish.staged_files import check_found, check_markers, rejected, written_files
from airflow_provider_acid.compaction.steps import Step, StepListener
from airflow_provider_acid.exceptions import AcidError, HalfPublishedError, StorageError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.plan.plan import CompactionPlan, OutputDirectory
from airflow_provider_acid.plan.result import CompactionResult


class PublicationByRename:
    """See :class:`~.store_rules.Publication`."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

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
