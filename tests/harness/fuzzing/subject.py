"""What is fuzzed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Subject:
    """One reader of bytes that others may have written.

    :param name: also the name of its folder in the corpus.
    :param seeds: gives whole and right documents, in an order that stays.
    :param read: reads a document that may be damaged. It may return, where what came out is right, or raise one of the
        project's errors; an AssertionError says that what came out is wrong. It must keep nothing that grows.
    :param most_bytes: how much one case may add to the process's memory.
    :param cases: how many are played in CI; soak plays more.
    """

    name: str
    seeds: Callable[[], Sequence[bytes]]
    read: Callable[[bytes], object]
    most_bytes: int = 64 * 1024 * 1024
    cases: int = 500


def subject_at(path: str) -> Subject:
    """The subject at a dotted path, by which another process finds it, too."""
    module, _, name = path.rpartition(".")
    subject = getattr(import_module(module), name)
    assert isinstance(subject, Subject)
    return subject
