"""What somebody asks for by hand: a type of compaction, of some partitions or of a whole table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.plan.plan import CompactionType


class DemandedType(str, Enum):
    """What is asked for: by the thresholds, or so whatever they say."""

    AUTO = "auto"
    MINOR = "minor"
    MAJOR = "major"


@dataclass(frozen=True)
class Demand:
    """A wish for one table, by somebody who names it.

    :param partitions: only these, spelled as SHOW PARTITIONS does; none for all, or for a table without.
    :param type: what is done whatever the thresholds say; None: what they say. Refusals hold all the same.
    """

    partitions: tuple[str, ...] = ()
    type: CompactionType | None = None

    @classmethod
    def of(cls, partition: str | None, type: DemandedType) -> Demand:
        """A demand of what people write.

        :param partition: one, or several, each on a line.
        :raises ConfigurationError: a partition is not spelled as SHOW PARTITIONS does.
        """
        return cls(
            as_partitions("partition", partition or ""),
            None if type is DemandedType.AUTO else CompactionType(type.value),
        )


def as_name(what: str, value: object) -> str:
    """The name of a ``database`` or ``table``.

    :raises ConfigurationError: it is missing, or a pattern.
    """
    name = str(value)
    if not name.strip() or any(character in name for character in ".*?[ \t"):
        raise ConfigurationError(f"{what} {name!r}", "is not the name of one", f"give the name of one {what}")
    return name.strip()


def as_partition(what: str, value: object) -> str | None:
    """The name of a partition; None for an empty one.

    :raises ConfigurationError: it is not spelled as SHOW PARTITIONS does.
    """
    name = str(value).strip()
    if "\n" in name or (name and not all("=" in part.strip("=") for part in name.split("/"))):
        raise ConfigurationError(
            f"{what} {name!r}",
            "is not of the form key=value",
            "spell it as SHOW PARTITIONS does, e.g. ds=2026-01-01/region=eu, or leave it empty for the whole table",
        )
    return name or None


def as_partitions(what: str, value: object) -> tuple[str, ...]:
    """The names of some partitions, each on a line, which no name holds the end of; none for an empty text.

    :raises ConfigurationError: one is not spelled as SHOW PARTITIONS does.
    """
    names = (as_partition(what, line) for line in str(value).split("\n"))
    return tuple(dict.fromkeys(name for name in names if name is not None))


def one_table(database: str, table: str) -> TableSelection:
    """The selection of one table by its name.

    :raises ConfigurationError: a name is missing, or is a pattern.
    """
    return TableSelection.of([f"{as_name('database', database)}.{as_name('table', table)}"])


def one_entity(database: str, table: str, partition: str | None) -> Entity:
    """One partition, or one table without any, by its names.

    :raises ConfigurationError: a name is missing, is a pattern, or cannot be a partition's.
    """
    (name,) = one_table(database, table).include
    name_of_database, _, name_of_table = name.partition(".")
    return Entity(name_of_database, name_of_table, as_partition("partition", partition or ""))
