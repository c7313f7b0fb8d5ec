"""Which deltas a minor compaction merges, and what stands in its way."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_acid.acid.directory import AcidDirectory, BaseDirectory, DeltaDirectory
from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.acid.names import NO_STATEMENT, DeltaName
from airflow_provider_acid.acid.unseen import is_cut_by, is_doubled_beside, uncommitted_bases, uncommitted_deltas
from airflow_provider_acid.plan.partition import CompactionPolicy, MinorPublication
from airflow_provider_acid.plan.sources import has_raw_files

Deltas = tuple[DeltaDirectory, ...]


def nothing_for_a_minor(deltas: Sequence[DeltaDirectory]) -> str | None:
    """Why a minor compaction would change nothing; None where it is worth it.

    The rule of Hive 4's ``CompactorUtil.isEnoughToCompact``: more than one delta, and not just one of each kind.
    """
    inserts = sum(1 for delta in deltas if not delta.name.is_delete)
    deletes = len(deltas) - inserts
    if inserts > 1 or deletes > 1:
        return None
    what = " and ".join(delta.path for delta in deltas)
    return f"there is only {what}, so a minor compaction has nothing to merge" if deltas else "there are no deltas"


def minor_inputs(deltas: Sequence[DeltaDirectory], max_num_delta: int) -> Deltas:
    """The first deltas, at most so many; never a part of those that share a write id.

    :param deltas: current deltas in Hive's order.
    :return: empty where the first that share one are too many.
    """
    end = highest = 0
    for place, delta in enumerate(deltas):
        if place > max_num_delta:
            break
        if delta.name.min_write_id > highest:
            end = place
        highest = max(highest, delta.name.max_write_id)
    return tuple(deltas if len(deltas) <= max_num_delta else deltas[:end])


def delta_with_aborted_rows(directory: AcidDirectory) -> str | None:
    """A current delta that holds rows of aborted write ids beside others; None where there is none.

    A streaming writer leaves such. Hive's readers leave those rows out, Trino's do not. Compactions left them out of
    what they wrote; where names carry no transaction (Hive 3), theirs cannot be told from a writer's.
    """
    for delta in directory.deltas:
        if delta.path in directory.partly_aborted and not delta.name.visibility_txn_id:
            return delta.path
    return None


def needs_a_base(directory: AcidDirectory) -> str | None:
    """Why a full-ACID partition is better off with a base than with fewer deltas; None where it is not.

    Hive 4's Initiator asks for a major in these cases, and its minor refuses them.
    """
    if directory.originals:
        return "it has original files, which become ACID rows in a base only"
    if has_raw_files(directory.deltas):
        return "it has deltas without ACID columns (LOAD DATA)"
    return None


def no_insert_only_minor(hive: Hive) -> str | None:
    """Why deltas of insert-only tables are not merged; None where they are."""
    if hive.has_insert_only_minors:
        return None
    return "on Hive 3, readers that began before its last transactions would see rows of those in a merged delta"


def range_obstacle(
    directory: AcidDirectory, inputs: Deltas, policy: CompactionPolicy, *, insert_only: bool = False
) -> str | None:
    """Why these deltas make no range that a minor compaction may publish; None where they do."""
    forbidden = _publication_obstacle(inputs, policy)
    if forbidden is not None:
        return forbidden
    if not inputs:
        return f"more than {policy.max_num_delta} deltas share their write ids"
    first, last = output_range(inputs)
    if first == last:
        return _of_one_write_id(first, insert_only)
    for other in directory.directories:
        if not isinstance(other, BaseDirectory) and _is_output_of(other.name, first, last):
            return f"{other.path} has their range of write ids already"
    for delta in uncommitted_deltas(directory):
        if is_doubled_beside(delta.name, first, last):
            # Trino would read both, and so would Hive once both are committed (HIVE-29210).
            return f"{delta.path}, of a compaction that is not committed, would be read beside it"
    for base in uncommitted_bases(directory):
        if is_cut_by(base.name, first, last):
            return f"{base.path}, of a compaction that is not committed, holds a part of their rows"
    return None


def output_range(inputs: Deltas) -> tuple[int, int]:
    """The lowest and the highest write id of deltas."""
    return min(delta.name.min_write_id for delta in inputs), max(delta.name.max_write_id for delta in inputs)


def _publication_obstacle(inputs: Deltas, policy: CompactionPolicy) -> str | None:
    if policy.minor_publication is MinorPublication.NEVER:
        return "a minor may need the publish lock, which is switched off"
    kinds = {delta.name.is_delete for delta in inputs}
    if policy.hive.publishes_by_commit or policy.minor_pairs_on_hive_3 or True not in kinds:
        return None
    if len(kinds) > 1:
        return (
            "of its two renames, the first alone would show wrong rows to every reader of Hive 3 (inserts and deletes)"
        )
    # Its metastore lets two transactions delete one row. Of two files that name the same row, its vectorized reader
    # drops all that follows in one of them (ColumnizedDeleteEventRegistry: a map by row): here, others' events, too.
    return "on Hive 3, readers leave out events of a merged delete delta where a later transaction deletes a row again"


def _of_one_write_id(write_id: int, insert_only: bool) -> str:
    if insert_only:
        return f"all deltas are of write id {write_id}, which is no range"
    # Readers compare statement ids only while directories carry them (isQualifiedDeleteDeltaForSplit).
    return f"its deltas are of write id {write_id} alone, within which statements tell deletes from what they delete"


def _is_output_of(name: DeltaName, first: int, last: int) -> bool:
    return (name.min_write_id, name.max_write_id, name.statement_id) == (first, last, NO_STATEMENT)
