"""What differs by store: a rename moves a whole directory at once; where there is none, files are copied and deleted.

Chosen here is how staging directories are taken over and removed, and how a result is published. What a cleaner
deletes is bound otherwise (:mod:`discard`), the Worker refuses what a store cannot show at once, and the Spark job
leaves its files where they can be published from; each of them asks the store itself.
"""

from __future__ import annotations

from typing import Protocol

from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.publish.publication_by_copy import PublicationByCopy
from airflow_provider_acid.compaction.publish.publication_by_rename import PublicationByRename
from airflow_provider_acid.compaction.publish.staging import FinishedOutput
from airflow_provider_acid.compaction.publish.staging_by_copy import StagingByCopy
from airflow_provider_acid.compaction.publish.staging_by_rename import StagingByRename
from airflow_provider_acid.compaction.steps import StepListener
from airflow_provider_acid.filesystem import ObjectStorage, Storage
from airflow_provider_acid.plan.plan import CompactionPlan, OutputDirectory
from airflow_provider_acid.plan.result import CompactionResult


class Staging(Protocol):
    """How staging directories, and what was published from them, are taken out of the reach of others."""

    def take_over(self, token: str) -> str | None:
        """See to it that a dead attempt publishes nothing more, should it wake up.

        :returns: the staging directory's name from now on; None where there is none (any more).
        """

    def remove(self, name: str) -> None:
        """Remove a directory; missing is no error, nor is that somebody else removes it at the same time."""

    def give_up(self, plan: CompactionPlan) -> None:
        """The owner's own removal of its staging directory.

        It stays where something of its result is there, since only the journal tells what belongs together.
        """

    def sealed_output(self, staging: str) -> FinishedOutput | None:
        """What a dead attempt finished but did not publish; None where it finished nothing that can be used."""

    def adopt(self, finished: FinishedOutput, plan: CompactionPlan) -> bool:
        """Make a finished output that of ``plan``, whose transaction is open; False where somebody else took it."""


class Publication(Protocol):
    """How a result gets under its names."""

    def check_staged(self, plan: CompactionPlan, result: CompactionResult, output: OutputDirectory) -> None:
        """Check that the files of one directory of the result are there as reported, and its marker files.

        :raises VerificationError: they are not.
        """

    def shows_parts(self, result: CompactionResult) -> bool:
        """Whether readers that ignore a compaction's transaction could see a part of one directory."""

    def publish(self, active: ActiveCompaction, result: CompactionResult, on_step: StepListener) -> None:
        """Publish a result that was checked, whole or not at all.

        :raises NameTakenError: one of the names exists.
        :raises HalfPublishedError: a part is there, or may be, and was not taken back.
        """


def staging_on(storage: Storage) -> Staging:
    """The rules of a store."""
    return StagingByCopy(storage) if isinstance(storage, ObjectStorage) else StagingByRename(storage)


def publication_on(storage: Storage) -> Publication:
    """The rules of a store."""
    return PublicationByCopy(storage) if isinstance(storage, ObjectStorage) else PublicationByRename(storage)
