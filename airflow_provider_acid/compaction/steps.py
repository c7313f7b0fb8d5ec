"""Names for the points at which a worker or a cleaner may die; tests kill the process right after each."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from airflow_provider_acid.acid.entity import Entity


class Step(str, Enum):
    """A step that has just been completed, in the order of a compaction's life.

    On Hive 3, where the rename publishes, ``MARKED_COMPACTED`` comes before ``COMMITTED``.
    Those of the exclusive lock and of the journal belong to what appears in several steps: a delta and a delete delta,
    and on S3 several files; there all publications have a journal. ``FIRST_PUBLISHED`` is the first of two renames.
    """

    RECOVERED = "recovered"
    ENQUEUED = "enqueued"
    CLAIMED = "claimed"
    TRANSACTION_OPENED = "transaction_opened"
    RECORDED = "recorded"
    STAGED = "staged"
    VERIFIED = "verified"
    FENCED = "fenced"
    EXCLUSIVE_LOCK_ASKED = "exclusive_lock_asked"
    EXCLUSIVE_LOCK_HELD = "exclusive_lock_held"
    JOURNALLED = "journalled"
    FIRST_PUBLISHED = "first_published"
    PUBLISHED = "published"
    COMMITTED = "committed"
    MARKED_COMPACTED = "marked_compacted"
    STAGING_REMOVED = "staging_removed"
    CLEANING_DECIDED = "cleaning_decided"
    FILES_DELETED = "files_deleted"
    MARKED_CLEANED = "marked_cleaned"


StepListener = Callable[[Step, Entity], None]


def ignore_steps(step: Step, entity: Entity) -> None:
    """The listener of everyday use: it does nothing."""
