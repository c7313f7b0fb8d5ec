"""What a job reports about the files of one directory of its result, and how a wrong report is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_provider_acid.exceptions import VerificationError
from airflow_provider_acid.plan.plan import OutputKind
from airflow_provider_acid.plan.result import CompactionResult, OutputFile


def written_files(result: CompactionResult, kind: OutputKind) -> Sequence[OutputFile]:
    """The files of one directory, without buckets of which nothing was left."""
    return [file for file in result.files if file.output is kind and file.name is not None]


def check_found(subject: str, found: Mapping[str, int], reported: Mapping[str, int]) -> None:
    """Compare files with what was reported about them: names and sizes.

    :raises VerificationError: they differ.
    """
    if found != reported:
        raise rejected(subject, f"holds {_names(found)}, the job reported {_names(reported)}")


def check_markers(subject: str, found: set[str], expected: set[str]) -> None:
    """Compare hidden files with those that tell readers what a directory is.

    :raises VerificationError: they differ.
    """
    if found != expected:
        raise rejected(subject, "lacks the marker files of an ACID directory, or has others")


def rejected(subject: str, reason: str) -> VerificationError:
    """The error for an output that is not published."""
    return VerificationError(subject, reason, "look at the Spark application's log; the table was not changed")


def _names(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({size} bytes)" for name, size in sorted(sizes.items())) or "no data files"
