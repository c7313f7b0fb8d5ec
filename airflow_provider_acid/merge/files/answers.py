"""What a task answers for one bucket of a plan."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from airflow_provider_acid.merge.keys.acid_keys import Key
from airflow_provider_acid.plan.exchange import ATTEMPTS_DIRECTORY
from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.plan.result import OutputFile

Progress = Callable[[int], None]
"""Called with the bytes of the sources that are read so far."""


@dataclass(frozen=True)
class Merged:
    """A finished attempt at one output file.

    :param attempt: path of the written file below the partition's location; None when nothing is left, because then
        no file is written.
    :param file: its figures.
    """

    attempt: str | None
    file: OutputFile


@dataclass(frozen=True)
class Part:
    """A finished attempt at one slice: a file whose stripes become part of a bucket's.

    :param path: below the partition's location.
    :param tail_digest: SHA-256 of its tail.
    :param last_keys: of its stripes, by the slice's segments.
    """

    path: str
    size_bytes: int
    tail_digest: bytes
    last_keys: tuple[tuple[Key, ...], ...]


def attempt_path(plan: CompactionPlan, name: str) -> str:
    """A new path, below the partition's location, for an attempt at one output file."""
    return _attempt(f"{plan.staging}/{ATTEMPTS_DIRECTORY}/{name}")


def next_attempt_path(path: str) -> str:
    """A new path for a file that takes the place of this attempt."""
    return _attempt(path.rpartition(".")[0])


def _attempt(path: str) -> str:
    return f"{path}.{uuid.uuid4().hex}"
