"""The unit of compaction: an unpartitioned table or one partition of a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote


@dataclass(frozen=True, order=True)
class Entity:
    """A table, or a partition of one; what a row of Hive's compaction queue is about.

    :param database: database name, lower case as the metastore keeps it.
    :param table: table name, lower case.
    :param partition: partition name as the metastore spells it (``ds=2024-01-01/h=0``, values escaped,
        case of values kept), or None for an unpartitioned table.
    """

    database: str
    table: str
    partition: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "database", self.database.lower())
        object.__setattr__(self, "table", self.table.lower())

    @property
    def full_table_name(self) -> str:
        """``database.table``, the form in which the metastore keys write ids."""
        return f"{self.database}.{self.table}"

    def __str__(self) -> str:
        return f"{self.full_table_name}/{self.partition}" if self.partition else self.full_table_name


@lru_cache(maxsize=4096)
def whatever_spelling(partition: str) -> str:
    """What the spellings of a partition's name in a metastore's records have in common.

    A metastore's ``lock`` changes the names that it is given: Hive 3 puts them into lower case, escapes included
    (``TxnHandler``), and Hive 4 escapes them once more (``TxnUtils.normalizePartitionCase``). Two partitions may have
    it in common, too. Java's lower case of a Greek Σ may be another one than Python's; folded they are the same.
    """
    while (unescaped := unquote(partition)) != partition:
        partition = unescaped
    return partition.casefold()
