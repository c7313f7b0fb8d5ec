"""The last look before a result becomes the table: output as reported, inputs as planned, owner still the owner."""

from __future__ import annotations

from airflow_provider_acid.acid.names import ACID_VERSION_FILE, METADATA_FILE, is_hidden
from airflow_provider_acid.acid.plan import OUTPUT_DIRECTORY, CompactionPlan, CompactionResult, OutputFile
from airflow_provider_acid.exceptions import NameTakenError, OwnershipLostError, VerificationError
from airflow_provider_acid.filesystem import Storage, join


def verify_output(storage: Storage, plan: CompactionPlan, result: CompactionResult) -> None:
    """Check that the finished directory is what the job reported and what the plan asked for.

    Spark's exit code proves nothing, nor does the report alone: names and sizes are compared with the storage.

    :raises VerificationError: a file is missing, too many, of another size, its counts do not add up, or the report
        is about another attempt.
    """
    if (result.attempt, result.entity) != (plan.attempt, plan.entity):
        raise _rejected(str(plan.entity), f"got the result of attempt {result.attempt} at {result.entity}")
    output = f"{plan.staging}/{OUTPUT_DIRECTORY}"
    found = storage.list(output)
    subject = join(storage.location, output)
    written = {file.path: file.size_bytes for file in found.files if not is_hidden(file.path)}
    reported = {file.name: file.size_bytes for file in result.files if file.rows_out}
    if found.directories or written != reported:
        raise _rejected(subject, f"holds {_names(written)}, the job reported {_names(reported)}")
    markers = {file.path for file in found.files} & {ACID_VERSION_FILE, METADATA_FILE}
    if markers != {ACID_VERSION_FILE, METADATA_FILE}:
        raise _rejected(subject, "lacks the marker files of an ACID base")
    planned = sorted(bucket.bucket for bucket in plan.buckets)
    buckets = sorted(file.bucket for file in result.files)
    if buckets != planned:
        raise _rejected(subject, f"accounts for the buckets {buckets}, planned were {planned}")
    for file in result.files:
        _check_counts(join(subject, file.name), file)


def _check_counts(subject: str, file: OutputFile) -> None:
    if file.rows_out != file.rows_in - file.rows_aborted - file.rows_deleted:
        raise _rejected(
            subject,
            f"holds {file.rows_out} rows, but {file.rows_in} came in, {file.rows_aborted} of them aborted and "
            f"{file.rows_deleted} deleted",
        )


def _rejected(subject: str, reason: str) -> VerificationError:
    return VerificationError(subject, reason, "look at the Spark application's log; the table was not changed")


def _names(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name} ({size} bytes)" for name, size in sorted(sizes.items())) or "no data files"


def check_inputs(storage: Storage, plan: CompactionPlan) -> None:
    """Check that the directories that were merged still hold the files that were merged, and no others.

    :raises OwnershipLostError: somebody changed the inputs; the output is not published.
    :raises NameTakenError: a directory of the target's name exists.
    """
    listing = storage.list()
    planned = {file.path: file.size_bytes for file in plan.input_files}
    found = {
        file.path: file.size_bytes
        for file in listing.files
        if file.path.partition("/")[0] in plan.directories and not is_hidden(file.path.rpartition("/")[2])
    }
    changed = sorted(path for path in planned.keys() | found.keys() if found.get(path, 0) != planned.get(path, 0))
    missing = sorted(path for path in planned if path not in found)
    if changed or missing:
        raise OwnershipLostError(
            str(plan.entity),
            f"its input files changed while they were merged: {', '.join(sorted({*changed, *missing}))}",
            "start the compaction again; it will see the new state",
        )
    if plan.target in listing.directories:
        raise NameTakenError(
            join(storage.location, plan.target), "exists already", "find out who wrote it before removing it"
        )
