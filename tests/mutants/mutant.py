"""One-line mutants of the protocol: mistakes that somebody could make, each with the test that notices it.

They stand in the TOML files beside this module, one file for each part of the protocol. ``before`` is text of the
file, whole lines that stand there once, and ``after`` what they become: one line is another one, or stands elsewhere. A
line that stands there several times is told by the lines around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import tomllib

ROOT = Path(__file__).parents[2]

_FIELDS = frozenset({"name", "file", "before", "after", "test"})


@dataclass(frozen=True)
class Mutant:
    """One mistake.

    :param part: of the protocol: the name of the file that describes it.
    :param name: what is broken, as a sentence.
    :param file: below the repository's root, as is the test's.
    :param test: the pytest node that must fail.
    """

    part: str
    name: str
    file: str
    before: str
    after: str
    test: str

    def applied_to(self, source: str) -> str:
        """The file's text with the mistake in it.

        :raises ValueError: it does not stand there once, or is not one line's.
        """
        lines, was, becomes = source.splitlines(), self.before.splitlines(), self.after.splitlines()
        places = [place for place in range(len(lines)) if lines[place : place + len(was)] == was]
        if len(places) != 1 or not _differ_by_one_line(was, becomes):
            raise ValueError(f"{self.name!r}: stands {len(places)} times in {self.file}, or more than one line differs")
        lines[places[0] : places[0] + len(was)] = becomes
        return "\n".join(lines) + "\n"


def _differ_by_one_line(some: list[str], others: list[str]) -> bool:
    """Whether they are the same but for one line of each, wherever it stands."""
    if some == others or len(some) != len(others):
        return False
    rests, other_rests = ([[*lines[:at], *lines[at + 1 :]] for at in range(len(lines))] for lines in (some, others))
    return any(rest in other_rests for rest in rests)


@lru_cache
def all_mutants() -> tuple[Mutant, ...]:
    """All that are described, part by part.

    :raises ValueError: one is described wrongly.
    """
    return tuple(
        _read(path.stem, described)
        for path in sorted(Path(__file__).parent.glob("*.toml"))
        for described in tomllib.loads(path.read_text())["mutant"]
    )


def _read(part: str, described: dict[str, str]) -> Mutant:
    if set(described) != _FIELDS:
        raise ValueError(f"{part}: {described.get('name')!r} has the fields {sorted(described)}")
    return Mutant(part, **described)
