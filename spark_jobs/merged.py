"""What a task answers for one bucket of a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from airflow_provider_acid.acid.result import OutputFile

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
