"""The plan of a compaction: what is merged into which files and directories, or why the partition is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_provider_acid.acid.directory import AcidDirectory, BaseDirectory, DeltaDirectory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.names import MINIMUM_WRITE_ID, BaseName, DeltaName, is_hidden
from airflow_provider_acid.acid.unseen import covering_write_id, deltas_above
from airflow_provider_acid.acid.write_ids import WriteIdView
from airflow_provider_acid.exceptions import ConfigurationError, RefusedError, UnsupportedTableError
from airflow_provider_acid.plan.insert_only_planning import (
    insert_only_buckets,
    insert_only_obstacle,
    refuse_insert_only,
    refuse_originals,
)
from airflow_provider_acid.plan.minor import (
    Deltas,
    delta_with_aborted_rows,
    minor_inputs,
    needs_a_base,
    nothing_for_a_minor,
    output_range,
    range_obstacle,
)
from airflow_provider_acid.plan.partition import AttemptNames, CompactionPolicy, PartitionState
from airflow_provider_acid.plan.plan import (
    BucketPlan,
    CompactionPlan,
    CompactionType,
    FileFormat,
    OrcOptions,
    OutputDirectory,
    OutputKind,
    SourceFile,
)
from airflow_provider_acid.plan.refusals import refuse_unsupported
from airflow_provider_acid.plan.sources import (
    FilesByBucket,
    directory_files,
    in_key_order,
    original_files,
    side_files,
)

Directories = tuple[BaseDirectory | DeltaDirectory, ...]


@dataclass(frozen=True)
class Choice:
    """What is to be done about a partition.

    :param type: the type that is carried out.
    :param inputs: base and deltas that are merged; original files belong to a major without a base.
    :param instead: why it is not the type that was asked for; None where it is.
    :param nothing: why nothing needs to be done; None where something does.
    """

    type: CompactionType
    inputs: Directories
    instead: str | None = None
    nothing: str | None = None


def choose(
    entity: Entity, directory: AcidDirectory, file_format: FileFormat, wanted: CompactionType, policy: CompactionPolicy
) -> Choice:
    """Decide on type and inputs: a minor that is not possible or not safe becomes a major.

    :param directory: the partition as a compactor sees it.
    :raises UnsupportedTableError: the partition holds something that is not compacted.
    :raises UnknownNameError: the partition holds a file that no rule explains.
    """
    is_insert_only = file_format.is_insert_only
    (refuse_insert_only if is_insert_only else refuse_unsupported)(entity, directory)
    if wanted is CompactionType.MAJOR:
        return _major(entity, directory, file_format, policy)
    inputs = minor_inputs(directory.deltas, policy.max_num_delta)
    obstacle = None if is_insert_only else needs_a_base(directory)
    if obstacle is None:
        nothing, aborted = nothing_for_a_minor(directory.deltas), delta_with_aborted_rows(directory)
        # Where names carry no transaction, a minor of a minor's result would become a major.
        if nothing and (aborted is None or not policy.hive.publishes_by_commit):
            return Choice(wanted, inputs, nothing=nothing)
        if nothing:
            obstacle = f"{aborted} holds rows of aborted write ids, and there is no other delta to merge it with"
        else:
            obstacle = (insert_only_obstacle if is_insert_only else range_obstacle)(directory, inputs, policy)
    if obstacle is None:
        return Choice(wanted, inputs)
    return _major(entity, directory, file_format, policy, instead=obstacle)


def _major(
    entity: Entity,
    directory: AcidDirectory,
    file_format: FileFormat,
    policy: CompactionPolicy,
    instead: str | None = None,
) -> Choice:
    if file_format.is_insert_only:
        refuse_originals(entity, directory, policy)
    nothing = nothing_for_a_major(directory, policy)
    return Choice(CompactionType.MAJOR, directory.current, instead, nothing)


def nothing_for_a_major(directory: AcidDirectory, policy: CompactionPolicy) -> str | None:
    """Why a major compaction would change nothing; None where it is worth it.

    The rule of Hive 4's Worker: original files, or more than one directory to merge. And one delta is worth it that
    holds rows of aborted write ids, which would else stay for ever.
    """
    count = len(directory.current)
    if directory.originals or count > 1 or (policy.rewrite_single_delta and directory.deltas):
        return None
    if delta_with_aborted_rows(directory) is not None:
        return None
    what = f"only {directory.current[0].path}" if count else "no data"
    return f"there is {what}, so a major compaction has nothing to merge"


def plan_compaction(
    partition: PartitionState,
    names: AttemptNames,
    wanted: CompactionType,
    reason: str,
    policy: CompactionPolicy = CompactionPolicy(),  # noqa: B008 - immutable
) -> CompactionPlan:
    """Plan a compaction of one partition.

    :param reason: one sentence that says why it is compacted.
    :raises UnsupportedTableError: the partition holds something that is not compacted.
    :raises UnknownNameError: the partition holds a file that no rule explains.
    :raises RefusedError: there is nothing to merge, or not yet.
    :raises ConfigurationError: the write ids are not a compactor's, or the staging name is not hidden.
    """
    _check_arguments(partition, names)
    choice = choose(partition.entity, partition.directory, partition.format, wanted, policy)
    if choice.nothing:
        raise RefusedError(f"table {partition.entity}", choice.nothing, "nothing needs to be done")
    return CompactionPlan(
        attempt=names.attempt,
        entity=partition.entity,
        type=choice.type,
        reason=f"{reason}; done as a major, because {choice.instead}" if choice.instead else reason,
        location=partition.location,
        staging=names.staging,
        format=partition.format,
        outputs=_outputs(partition, choice, names.visibility_txn_id),
        columns=partition.columns,
        high_water_mark=partition.write_ids.high_water_mark,
        aborted_write_ids=partition.write_ids.aborted,
        directories=tuple(directory.path for directory in choice.inputs),
        side_files=side_files(choice.inputs),
        bucketed=partition.bucketed,
        orc=orc_options(partition.table_parameters, policy),
        buckets=_buckets(partition, choice),
    )


def _check_arguments(partition: PartitionState, names: AttemptNames) -> None:
    view = partition.write_ids.view
    if view is not WriteIdView.COMPACTOR:
        raise ConfigurationError("a plan", f"was given the list of a {view.value}", "use compactor_list")
    if not is_hidden(names.staging) or "/" in names.staging:
        raise ConfigurationError(f"staging name {names.staging!r}", "is visible to readers", "let it start with '_'")


def _outputs(partition: PartitionState, choice: Choice, visibility_txn_id: int) -> tuple[OutputDirectory, ...]:
    deltas = _deltas(choice.inputs)
    if choice.type is CompactionType.MAJOR:
        base = BaseName(_base_write_id(partition, choice.inputs), visibility_txn_id)
        return (OutputDirectory(OutputKind.ROWS, str(base)),)
    first, last = output_range(deltas)
    return tuple(
        OutputDirectory(kind, str(DeltaName(first, last, visibility_txn_id=visibility_txn_id, is_delete=is_delete)))
        for kind, is_delete in ((OutputKind.ROWS, False), (OutputKind.DELETES, True))
        if any(delta.name.is_delete is is_delete for delta in deltas)
    )


def _base_write_id(partition: PartitionState, inputs: Directories) -> int:
    # Not the high-water mark: a repeated run over unchanged input must give the same name.
    known = [part.write_id if isinstance(part, BaseDirectory) else part.name.max_write_id for part in inputs]
    highest = max(known, default=MINIMUM_WRITE_ID)
    write_id = covering_write_id(partition.directory, highest)
    hidden = [
        delta.path for delta in deltas_above(partition.directory) if highest < write_id >= delta.name.min_write_id
    ]
    if hidden or write_id > partition.write_ids.high_water_mark:
        raise RefusedError(
            f"table {partition.entity}",
            f"has an uncommitted compaction's output up to write id {write_id}; a base up to {highest} would be read "
            f"beside it, one up to {write_id} would hide what is still written ({', '.join(hidden) or 'nothing'}; "
            f"high-water mark {partition.write_ids.high_water_mark})",
            "try again when the open transactions have ended",
        )
    return write_id


def _buckets(partition: PartitionState, choice: Choice) -> tuple[BucketPlan, ...]:
    if partition.format.is_insert_only:
        return insert_only_buckets(partition, choice.type, choice.inputs)
    if choice.type is CompactionType.MAJOR:
        return _major_buckets(partition, choice.inputs)
    return _minor_buckets(partition, choice.inputs)


def _major_buckets(partition: PartitionState, inputs: Directories) -> tuple[BucketPlan, ...]:
    rows = _rows(partition, inputs)
    deletes, all_deletes = _deletes(partition, inputs)
    # Delete files of a bucket that has no rows (any more) are inputs too: they are replaced with all others.
    buckets = rows.keys() | deletes.keys() if partition.bucketed or not rows else rows.keys()
    return tuple(
        BucketPlan(
            OutputKind.ROWS,
            bucket,
            rows.get(bucket, ()),
            deletes.get(bucket, ()) if partition.bucketed else all_deletes,
        )
        for bucket in sorted(buckets)
    )


def _minor_buckets(partition: PartitionState, inputs: Directories) -> tuple[BucketPlan, ...]:
    rows = directory_files(partition, in_key_order(_deltas(inputs, is_delete=False)))
    deletes, all_deletes = _deletes(partition, inputs)
    merged_rows = tuple(BucketPlan(OutputKind.ROWS, bucket, rows[bucket], ()) for bucket in sorted(rows))
    if partition.bucketed:
        routed = {bucket: deletes[bucket] for bucket in deletes}
    else:
        # An event goes to the file of its row's number, which may be any that the partition has a file of.
        numbers = _rows(partition, partition.directory.current).keys() | deletes.keys()
        routed = dict.fromkeys(numbers, all_deletes) if all_deletes else {}
    merged_deletes = tuple(BucketPlan(OutputKind.DELETES, bucket, (), routed[bucket]) for bucket in sorted(routed))
    return merged_rows + merged_deletes


def _rows(partition: PartitionState, inputs: Directories) -> FilesByBucket:
    """Files with rows, in the order of their keys: originals or base first, then the deltas."""
    bases = [part for part in inputs if isinstance(part, BaseDirectory)]
    files = directory_files(partition, (*bases, *in_key_order(_deltas(inputs, is_delete=False))))
    originals = original_files(partition)
    return {bucket: originals.get(bucket, ()) + files.get(bucket, ()) for bucket in originals.keys() | files.keys()}


def _deletes(partition: PartitionState, inputs: Directories) -> tuple[FilesByBucket, tuple[SourceFile, ...]]:
    """Files with delete events by their number, and all of them.

    Hive 3 wrote deletes of unbucketed tables into files of other numbers than their rows'.
    """
    deletes = directory_files(partition, in_key_order(_deltas(inputs, is_delete=True)))
    every = sorted((file for files in deletes.values() for file in files), key=lambda file: file.path)
    return deletes, tuple(every)


def _deltas(inputs: Directories, is_delete: bool | None = None) -> Deltas:
    return tuple(
        part
        for part in inputs
        if isinstance(part, DeltaDirectory) and (is_delete is None or part.name.is_delete is is_delete)
    )


_COMPRESSIONS = ("none", "zlib", "snappy", "lz4", "zstd")


def orc_options(
    table_parameters: Mapping[str, str],
    policy: CompactionPolicy = CompactionPolicy(),  # noqa: B008 - immutable
) -> OrcOptions:
    """How the table wants its ORC files written, and which stripes the site wants copied.

    :raises UnsupportedTableError: a compression or a number that cannot be honoured.
    """
    defaults = OrcOptions()
    compression = table_parameters.get("orc.compress", defaults.compression).strip().lower()
    if compression not in _COMPRESSIONS:
        raise UnsupportedTableError(
            f"table property orc.compress={table_parameters['orc.compress']}",
            f"names a compression that is not one of {', '.join(_COMPRESSIONS)}",
            "set the table property to one of them",
        )
    indexed = table_parameters.get("orc.create.index", "true").strip().lower() != "false"
    stride = _bytes_or_rows(table_parameters, "orc.row.index.stride", defaults.row_index_stride, minimum=0)
    return OrcOptions(
        compression=compression,
        compression_block_bytes=_bytes_or_rows(table_parameters, "orc.compress.size", defaults.compression_block_bytes),
        stripe_bytes=_bytes_or_rows(table_parameters, "orc.stripe.size", defaults.stripe_bytes),
        row_index_stride=stride if indexed else 0,
        bloom_filter_columns=tuple(
            name.strip() for name in table_parameters.get("orc.bloom.filter.columns", "").split(",") if name.strip()
        ),
        stripe_copy=policy.stripe_copy,
        small_stripe_share=policy.small_stripe_share,
        slice_bytes=policy.slice_bytes,
    )


def _bytes_or_rows(table_parameters: Mapping[str, str], name: str, default: int, minimum: int = 1) -> int:
    text = table_parameters.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        value = minimum - 1
    if value < minimum:
        raise UnsupportedTableError(
            f"table property {name}={text!r}", f"is no whole number from {minimum} on", "correct it or remove it"
        )
    return value
