"""What can happen to a partition, as values that hypothesis draws and shrinks.

Numbers are picks: they are taken modulo what there is to pick from, so that a step means something in every state. A
step that makes no sense in a state is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from airflow_provider_acid.acid.hive import HIVE_3, HIVE_4, Hive
from airflow_provider_acid.plan.partition import MinorPublication
from airflow_provider_acid.plan.plan import CompactionType


class Outcome(Enum):
    """How a transaction ends, or that it does not yet."""

    COMMIT = "commit"
    ABORT = "abort"
    OPEN = "open"


class What(Enum):
    """What a statement does."""

    INSERT = "insert"
    DELETE = "delete"
    UPDATE = "update"
    LOAD = "load"


class Oddity(Enum):
    """What is special about the files a transaction writes."""

    NONE = "none"
    EMPTY_FILE = "empty file"
    RETRIED = "second task attempt"
    FOREIGN_BUCKET = "deletes in foreign bucket files"


class Death(Enum):
    """Where a compaction dies."""

    NOT = "not"
    BEFORE_PUBLISHING = "before publishing"
    BETWEEN_RENAMES = "between two renames"
    AFTER_PUBLISHING = "after publishing"
    BEFORE_ITS_END = "one step before its end"
    """On Hive 4 between its commit and the marking of its request, on Hive 3 between these the other way round."""


@dataclass(frozen=True)
class Pause:
    """Nothing happens; what other steps shrink to."""


@dataclass(frozen=True)
class Statement:
    """One statement of a transaction.

    :param picks: the bucket of each inserted row, or which visible rows are deleted or updated.
    """

    what: What
    picks: tuple[int, ...]


@dataclass(frozen=True)
class Write:
    """A transaction of one or more statements.

    :param is_late: it is the one that began first of those that have not written yet, if there is any.
    """

    statements: tuple[Statement, ...]
    outcome: Outcome = Outcome.COMMIT
    oddity: Oddity = Oddity.NONE
    is_late: bool = False


@dataclass(frozen=True)
class Overwrite:
    """INSERT OVERWRITE, or LOAD DATA OVERWRITE where ``loaded``."""

    picks: tuple[int, ...]
    outcome: Outcome = Outcome.COMMIT
    loaded: bool = False


@dataclass(frozen=True)
class Stream:
    """A streaming writer with a batch of transactions, each inserting rows into the same files.

    :param outcomes: of each transaction; those after the first open one are open, too.
    :param halted: the writer leaves its side files and uncommitted bytes behind.
    """

    outcomes: tuple[Outcome, ...]
    picks: tuple[int, ...]
    halted: bool = False


@dataclass(frozen=True)
class Begin:
    """A transaction opens whose writes come later.

    :param has_write_id: it gets its write id now, so that others write with higher ones before it does.
    """

    has_write_id: bool = False


@dataclass(frozen=True)
class End:
    """An open transaction ends, of a writer, of a soft delete, of a group's other partition, or of a dead attempt."""

    which: int
    outcome: Outcome = Outcome.COMMIT


@dataclass(frozen=True)
class ElsewhereWrite:
    """A transaction writes to another partition of the table."""

    outcome: Outcome = Outcome.COMMIT


@dataclass(frozen=True)
class AddColumn:
    """ALTER TABLE ADD COLUMNS."""


@dataclass(frozen=True)
class SoftDelete:
    """Hive 4 drops what had the table's name before, and leaves its files to its own Cleaner."""

    outcome: Outcome = Outcome.COMMIT


@dataclass(frozen=True)
class OpenReader:
    """A query takes its snapshot and keeps reading.

    :param read_only: its transaction is of the type that Hive 4 leaves out of its list (``hive.txn.readonly.enabled``).
    :param has_lock: on Hive 4 it may have none (``hive.acid.lockless.reads.enabled``), or not yet.
    """

    read_only: bool = False
    has_lock: bool = True


@dataclass(frozen=True)
class CloseReader:
    """A query ends."""

    which: int


@dataclass(frozen=True)
class Meanwhile:
    """What happens right before the product's next look, in the middle of another step.

    :param look: how many looks at metastore or partition went before it in that step.
    """

    look: int
    step: Write | Begin | End | OpenReader | CloseReader | HiveCompacts | HiveMarks | HiveFinishes | HiveCleans


@dataclass(frozen=True)
class Compact:
    """A compaction from its beginning to its end."""

    type: CompactionType
    death: Death = Death.NOT
    meanwhile: tuple[Meanwhile, ...] = ()


@dataclass(frozen=True)
class StartCompaction:
    """A compaction takes its snapshot and makes its plan; other things happen before it ends."""

    type: CompactionType
    meanwhile: tuple[Meanwhile, ...] = ()


@dataclass(frozen=True)
class FinishCompaction:
    """The running compaction merges and publishes."""

    death: Death = Death.NOT


@dataclass(frozen=True)
class GroupBegins:
    """Another partition is begun together with the next compaction, and opens its transaction now.

    One look at the transactions is for all partitions of a group, as of the oldest transaction.

    :param has_ended: that one has ended by the time of the look, so that no cleaning waits for it.
    """

    has_ended: bool = False


@dataclass(frozen=True)
class HiveCompacts:
    """Hive 4's own worker compacts, from its beginning to its end."""

    type: CompactionType


@dataclass(frozen=True)
class HiveStarts:
    """Hive 4's own worker claims a request and takes its snapshot; other things happen before it ends."""

    type: CompactionType


@dataclass(frozen=True)
class HiveMarks:
    """Hive's worker compacts until one step before its end: its request is marked, and its transaction open.

    :param type: of a compaction that is begun where none is in work.
    """

    type: CompactionType


@dataclass(frozen=True)
class HiveFinishes:
    """Hive's worker publishes and commits, or fails, which it does no more once its request is marked."""

    outcome: Outcome = Outcome.COMMIT


@dataclass(frozen=True)
class HiveCleans:
    """Hive's own Cleaner looks at the oldest compaction of its worker that is ready for cleaning.

    :param waits_for_readers_only: as it may since 4.1 (``metastore.txn.use.minhistorywriteid``).
    """

    waits_for_readers_only: bool = False


@dataclass(frozen=True)
class Clean:
    """The cleaner looks at everything that is ready for cleaning."""

    meanwhile: tuple[Meanwhile, ...] = ()


Step = (
    Pause
    | Write
    | Overwrite
    | Stream
    | Begin
    | End
    | ElsewhereWrite
    | AddColumn
    | SoftDelete
    | OpenReader
    | CloseReader
    | Compact
    | StartCompaction
    | FinishCompaction
    | GroupBegins
    | HiveCompacts
    | HiveStarts
    | HiveMarks
    | HiveFinishes
    | HiveCleans
    | Clean
)


@dataclass(frozen=True)
class TableKind:
    """The table that a history begins with.

    :param hive_version: 3 or 4.
    :param buckets: 0 where the table declares none.
    :param originals: rows in each of :data:`ORIGINAL_FILES`; 0: no such file, -1: a file of 0 bytes.
    :param max_deltas: most deltas of one minor compaction.
    :param cleans_beside_readers: the site lets its cleaner delete while others have locks.
    """

    hive_version: int
    buckets: int = 0
    originals: tuple[int, ...] = ()
    max_deltas: int = 500
    mixed: MinorPublication = MinorPublication.UNDER_LOCK
    cleans_beside_readers: bool = False

    @property
    def hive(self) -> Hive:
        """The kind of its metastore."""
        return HIVE_4 if self.hive_version == 4 else HIVE_3


ORIGINAL_FILES = (
    "000000_0",
    "000000_0_copy_1",
    "000000_0_copy_2",
    "000000_0_copy_10",
    "000001_0",
    "1/000000_0",
    "HIVE_UNION_SUBDIR_1/000001_0_copy_1",
)


@dataclass(frozen=True)
class History:
    """A table and what happens to it."""

    table: TableKind
    steps: tuple[Step, ...]
