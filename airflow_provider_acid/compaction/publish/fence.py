"""The last look before a result becomes the table: output as reported, inputs as planned, owner still the owner."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from airflow_provider_acid.acid.names import (
    NO_STATEMENT,
    BaseName,
    DeltaName,
    has_hidden_part,
    is_acid_prefixed,
    parse_directory_name,
)
from airflow_provider_acid.acid.unseen import is_cut_by, is_doubled_beside
from airflow_provider_acid.compaction.publish.publisher import publisher_on
from airflow_provider_acid.compaction.publish.staged_files import rejected
from airflow_provider_acid.exceptions import NameTakenError, OwnershipLostError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.plan.row_counts import wrong_counts


def verify_output(storage: Storage, plan: CompactionPlan, result: CompactionResult) -> None:
    """Check that the finished directory is what the job reported and what the plan asked for.

    Spark's exit code proves nothing, nor does the report alone: names and sizes are compared with the storage.

    :raises VerificationError: a file is missing, too many, of another size, its counts do not add up or are not the
        plan's, or the report is about another attempt, or another plan.
    """
    if (result.attempt, result.entity) != (plan.attempt, plan.entity):
        raise rejected(str(plan.entity), f"got the result of attempt {result.attempt} at {result.entity}")
    if result.plan_digest != plan.digest:
        raise rejected(str(plan.entity), "was merged by another plan than the one that was handed out")
    planned = sorted((bucket.output.value, bucket.bucket) for bucket in plan.buckets)
    told = sorted((file.output.value, file.bucket) for file in result.files)
    if not plan.format.is_insert_only and told != planned or set(told) != set(planned):
        raise rejected(str(plan.entity), f"accounts for {_buckets(told)}, planned were {_buckets(planned)}")
    for output in plan.outputs:
        publisher_on(storage).check_staged(plan, result, output)
    for file in result.files:
        named = join(storage.location, plan.staged(file.output), file.name or f"bucket {file.bucket}")
        wrong = wrong_counts(plan, file)
        if wrong is not None:
            raise rejected(named, wrong)
        if not plan.format.is_insert_only and (file.name is None) != (file.rows_out == 0):
            raise rejected(named, f"has {file.rows_out} rows; a file is written where there are any, and only there")


def _buckets(buckets: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"bucket {bucket} of {kind}" for kind, bucket in buckets) or "no buckets"


def check_inputs(storage: Storage, plan: CompactionPlan, seen: Collection[str]) -> None:
    """Check that the directories that were merged still hold the files that were merged, and no others.

    :param seen: what the plan's listing showed right in the partition.
    :raises OwnershipLostError: somebody changed the inputs, or compacted the same write ids; the output is not
        published.
    :raises NameTakenError: a directory of the target's name exists.
    """
    listing = storage.list(into=lambda name: _is_input(plan, name))
    planned = {file.path: file.size_bytes for file in (*plan.input_files, *plan.side_files)}
    found = {file.path: file.size_bytes for file in listing.files if _is_input(plan, file.path)}
    changed = sorted(path for path in planned.keys() | found.keys() if found.get(path, 0) != planned.get(path, 0))
    missing = sorted(path for path in planned if path not in found)
    if changed or missing:
        raise OwnershipLostError(
            str(plan.entity),
            f"its input files changed while they were merged: {', '.join(sorted({*changed, *missing}))}",
            "start the compaction again; it will see the new state",
        )
    others = _read_beside(plan, listing.directories)
    if others:
        # Whatever their transactions: readers take both for parts of the table (HIVE-29210).
        raise OwnershipLostError(
            str(plan.entity),
            f"{', '.join(others)} appeared, with write ids of {', '.join(plan.targets)}, and both would be read",
            "start the compaction again; it will see the new state",
        )
    missed = _hidden_by_output(plan, [path for path in listing.directories if path not in seen])
    if missed:
        # A NameNode that did not know yet that another had taken its place, or a store's old listing.
        raise OwnershipLostError(
            str(plan.entity),
            f"{', '.join(missed)}, whose writers had ended before it was planned, were not listed then, and "
            f"{', '.join(plan.targets)} would hide their rows",
            "start the compaction again; it will see the new state",
        )
    for target in plan.targets:
        if target in listing.directories:
            raise NameTakenError(
                join(storage.location, target), "exists already", "find out who wrote it before removing it"
            )


def _read_beside(plan: CompactionPlan, directories: Iterable[str]) -> list[str]:
    """Compactions' directories that are neither the plan's own nor hidden by an output of it."""
    targets = [parse_directory_name(target) for target in plan.targets]
    known = {*plan.targets, *plan.directories}
    found = {path: parse_directory_name(path) for path in directories if "/" not in path and path not in known}
    return sorted(path for path, name in found.items() if any(_are_read_together(name, target) for target in targets))


def _hidden_by_output(plan: CompactionPlan, directories: Iterable[str]) -> list[str]:
    """Writers' directories with rows that are not all aborted, which nobody reads any more beside an output."""
    targets = [_span(parse_directory_name(target)) for target in plan.targets]
    aborted = set(plan.aborted_write_ids)
    hidden = []
    for path, name in ((path, parse_directory_name(path)) for path in directories if "/" not in path):
        first, last = _span(name)
        is_hidden = any(low <= first and last <= min(high, plan.high_water_mark) for low, high in targets)
        # A base's rows are those of its own write id, which overwrote all others.
        written = range(last if isinstance(name, BaseName) else first, last + 1)
        is_writers = name is not None and not name.visibility_txn_id
        if is_writers and is_hidden and not all(write_id in aborted for write_id in written):
            hidden.append(path)
    return sorted(hidden)


def _span(name: BaseName | DeltaName | None) -> tuple[int, int]:
    """The write ids of a directory; none where it is no ACID one."""
    if isinstance(name, BaseName):
        return 0, name.write_id
    return (1, 0) if name is None else (name.min_write_id, name.max_write_id)


def _are_read_together(found: BaseName | DeltaName | None, target: BaseName | DeltaName | None) -> bool:
    if isinstance(found, BaseName) and isinstance(target, DeltaName):
        # An INSERT OVERWRITE's base is its own write id's, which the plan took for aborted: the lock keeps others away.
        return found.visibility_txn_id > 0 and is_cut_by(found, target.min_write_id, target.max_write_id)
    if not isinstance(found, DeltaName) or found.statement_id != NO_STATEMENT:
        return False
    span = found.min_write_id, found.max_write_id
    if isinstance(target, BaseName):
        return found.visibility_txn_id > 0 and is_cut_by(target, *span)
    if target is None:
        return False
    # Without a compaction's transaction, a wider one is what a writer streams to, and was judged by the plan.
    output = target.min_write_id, target.max_write_id
    return span == output or (found.visibility_txn_id > 0 and is_doubled_beside(found, *output))


def _is_input(plan: CompactionPlan, path: str) -> bool:
    """Whether a file or directory lies where inputs lie: in a directory of the plan, or outside of all ACID ones."""
    if has_hidden_part(path):
        return False
    top = path.partition("/")[0]
    return top in plan.directories or (plan.makes_first_base and not is_acid_prefixed(top))
