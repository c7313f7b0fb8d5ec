"""What differs between Hive 3.1 and Hive 4, in one place: each difference has a name, and says what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from airflow_provider_acid.acid.write_ids import ValidTxnList


@dataclass(frozen=True)
class Hive:
    """The kind of a metastore, found out once by asking it what it can do, never by the text of its version.

    :param generation: 3 for Hive 3.1, 4 for Hive 4.
    :param version: what the server says its version is; for messages only.
    :param has_pools: whether a request over Thrift can be of a pool; where not, the server shows neither that nor a
        compaction's transaction. False on Hive 3.1 and on 4.0.0-alpha-1.
    """

    generation: Literal[3, 4]
    version: str
    has_pools: bool = True

    @property
    def queue_speaks_thrift(self) -> bool:
        """Whether workers and cleaners can do their bookkeeping over Thrift; else it is in the database alone."""
        return self.generation == 4

    @property
    def publishes_by_commit(self) -> bool:
        """Whether a compaction's result becomes part of the table when its transaction commits.

        Where not, the rename itself publishes, and names carry no transaction.
        """
        return self.generation == 4

    def visibility(self, txns: ValidTxnList) -> ValidTxnList | None:
        """The transactions by which a compaction's directories are visible; None where names carry none."""
        return txns if self.publishes_by_commit else None

    @property
    def lists_what_is_replaced(self) -> bool:
        """Whether a compaction notes what it replaced: its Cleaner could not tell by names without transactions."""
        return not self.publishes_by_commit

    @property
    def cleans_aborts_by_itself(self) -> bool:
        """Whether Hive's own Cleaner deletes what is obsolete wherever something aborted, without request or lock.

        It may be at work in any partition of a table with aborted writes on record.
        """
        return self.generation == 4

    def name_in_locks(self, partition: str) -> str:
        """What ``lock`` makes of a partition's name; under that it records what is written there."""
        return partition.lower() if self.generation == 3 else partition.replace("%", "%25")

    @property
    def is_claimed_until_cleaned(self) -> bool:
        """Whether a row that is ready for cleaning is still 'working' for everybody else.

        So Hive's own Cleaner leaves it alone, the metastore takes it back when it is silent, and the partition takes no
        other request meanwhile.
        """
        return self.generation == 3

    @property
    def has_readers_without_transactions(self) -> bool:
        """Whether a reader may have a lock alone."""
        return self.generation == 3

    @property
    def hides_deletions_from_readers(self) -> bool:
        """Whether a reader that lists while its directories go may find no rows; else it fails loudly."""
        return self.generation == 4

    @property
    def can_forget_nothing(self) -> bool:
        """Whether a row can be marked cleaned while all bookkeeping of write ids is kept."""
        return self.generation == 3

    @property
    def has_insert_only_minors(self) -> bool:
        """Whether deltas of insert-only tables can be merged.

        Their rows have no write ids: a merged delta is read whole as soon as a rename made it part of the table.
        """
        return self.publishes_by_commit

    @property
    def initiator_asks_for_needed_bases(self) -> bool:
        """Whether a major is asked for where a minor is impossible; else the minor becomes one when it is planned."""
        return self.generation == 4

    @property
    def counts_age_of_aborts(self) -> bool:
        """Whether one old aborted transaction makes a partition due."""
        return self.generation == 4

    @property
    def counts_obsolete_bases(self) -> bool:
        """Whether an obsolete base makes a partition without deltas due, so that it is cleaned."""
        return self.generation == 4

    @property
    def heeds_database_properties(self) -> bool:
        """Whether a database's ``no_auto_compaction`` counts, and then before the table's."""
        return self.generation == 4


HIVE_3 = Hive(3, "3.1", has_pools=False)
HIVE_4 = Hive(4, "4.0")
