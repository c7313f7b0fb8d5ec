"""Which tables a sensor looks at: patterns of ``database.table`` in the manner of a shell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from airflow_provider_acid.exceptions import ConfigurationError

_WILDCARDS = "*?["


@dataclass(frozen=True)
class UnmatchedPattern:
    """A pattern that no table needs: misspelt, perhaps, or its tables are gone.

    :param clause: what is to be told of it.
    :param is_mistake: false where it may be there for tables to come: it leaves some out, by a wildcard.
    """

    clause: str
    is_mistake: bool = True

    def __str__(self) -> str:
        return self.clause


@dataclass(frozen=True)
class TableSelection:
    """Tables by pattern.

    :param include: patterns such as ``sales.orders``, ``sales.*`` or ``*.events_?``.
    :param exclude: patterns of tables to leave out although they are included.
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()

    @classmethod
    def of(cls, include: Sequence[str], exclude: Sequence[str] = ()) -> TableSelection:
        """Make a selection of names as people write them.

        :raises ConfigurationError: no pattern, or one without a database.
        """
        patterns = tuple(pattern.strip().lower() for pattern in include if pattern.strip())
        if not patterns:
            raise ConfigurationError("table selection", "names no table", "give patterns such as sales.*")
        for pattern in (*patterns, *exclude):
            if pattern.count(".") != 1:
                raise ConfigurationError(
                    f"table pattern {pattern!r}",
                    "is not of the form database.table",
                    "write e.g. sales.* or sales.orders",
                )
        return cls(patterns, tuple(pattern.strip().lower() for pattern in exclude))

    @property
    def database_patterns(self) -> tuple[str, ...]:
        """The patterns' database parts, each once."""
        return tuple(dict.fromkeys(pattern.partition(".")[0] for pattern in self.include))

    def matches(self, full_table_name: str) -> bool:
        """Whether a table belongs to the selection."""
        name = full_table_name.lower()
        return any(fnmatchcase(name, pattern) for pattern in self.include) and not any(
            fnmatchcase(name, pattern) for pattern in self.exclude
        )

    def unmatched(self, full_table_names: Iterable[str]) -> tuple[UnmatchedPattern, ...]:
        """Every pattern that none of these tables needs.

        :param full_table_names: all tables of the databases that the patterns match.
        """
        names = [name.lower() for name in full_table_names]
        included = [name for name in names if any(fnmatchcase(name, pattern) for pattern in self.include)]
        return (
            *(
                UnmatchedPattern(f"table pattern {pattern!r} matches no table")
                for pattern in _without_match(self.include, names)
            ),
            *(
                UnmatchedPattern(f"excluded pattern {pattern!r} leaves out no table", not _has_wildcard(pattern))
                for pattern in _without_match(self.exclude, included)
            ),
        )

    def names_database(self, database: str) -> bool:
        """Whether a database is named without wildcards, by a pattern or by a table of it."""
        return database.lower() in self.database_patterns

    def names_exactly(self, full_table_name: str) -> bool:
        """Whether a table is named without wildcards."""
        return full_table_name.lower() in self.include

    @property
    def exact_names(self) -> tuple[str, ...]:
        """Full names of the tables that are named without wildcards."""
        return tuple(pattern for pattern in self.include if not _has_wildcard(pattern))


def _has_wildcard(pattern: str) -> bool:
    return any(character in pattern for character in _WILDCARDS)


def _without_match(patterns: Iterable[str], names: Sequence[str]) -> list[str]:
    return [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in names)]
