"""The rules by which a result gets under its names, and staging directories out of the reach of others.

They follow from whether a store renames a whole directory at once, or copies and deletes file by file.
"""

from __future__ import annotations

from typing import Protocol, cast

from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.publish.by_copy import ByCopy
from airflow_provider_acid.compaction.publish.by_rename import ByRename
from airflow_provider_acid.compaction.publish.discard import DISCARD_PREFIX, Discard
from airflow_provider_acid.compaction.publish.staging import FinishedOutput
from airflow_provider_acid.compaction.steps import StepListener
from airflow_provider_acid.filesystem import ObjectStorage, Storage
from airflow_provider_acid.plan.plan import CompactionPlan, OutputDirectory
from airflow_provider_acid.plan.result import CompactionResult


class Publisher(Protocol):
    """What attempts, their successors and cleaners do in one partition by the rules of its store."""

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

    def finished_output(self, staging: str) -> FinishedOutput | None:
        """What a dead attempt finished but did not publish; None where it finished nothing that can be used."""

    def adopt(self, finished: FinishedOutput, plan: CompactionPlan) -> bool:
        """Make a finished output that of ``plan``, whose transaction is open; False where somebody else took it."""

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

    def discard(self) -> Discard:
        """A directory for what a cleaning deletes."""


def publisher_on(storage: Storage) -> Publisher:
    """The publisher of a partition."""
    return ByRename(storage) if storage.rules.renames else ByCopy(cast(ObjectStorage, storage))


def remove_discards(storage: Storage, listing: Listing, own: Discard | None = None) -> tuple[str, ...]:
    """Remove such directories of others, with what they were about to delete; dead cleaners leave them.

    A living one finds out at its next deletion that its directory is gone, and looks again later.

    :param own: the caller's.
    :returns: what was removed.
    """
    others = [name for name in listing.directories if name.startswith(DISCARD_PREFIX) and "/" not in name]
    found = tuple(name for name in others if own is None or name != own.name)
    for name in found:
        publisher_on(storage).remove(name)
    return found
