"""What a cleaner may delete, and how far it may then let the metastore forget aborted write ids.

Rules: Hive 4's ``CompactionCleaner``, with the stricter treatment of aborted write ids that keeps Hive's own bug of
bringing aborted rows back out (a streaming delta whose aborted transaction was forgotten).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from airflow_provider_acid.acid.directory import AcidDirectory, BaseDirectory, DeltaDirectory, acid_directory
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.names import DeltaName, parse_directory_name
from airflow_provider_acid.acid.write_ids import LONG_MAX, ValidTxnList, ValidWriteIdList, WriteIdView
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.plan.refusals import half_published, half_published_error

_NOTHING = (1, 0)


def deletable(
    listing: Listing,
    write_ids: ValidWriteIdList,
    txns: ValidTxnList | None,
    base_formats: Mapping[str, str] = {},  # noqa: B006 - never changed
) -> tuple[str, ...]:
    """Directories and original files to delete after a compaction: obsolete or wholly aborted ones.

    :param write_ids: a cleaner's list, whose high-water mark is the compaction's highest write id.
    :param txns: transactions below the lowest that an open reader may still look from, the open ones left out;
        None on Hive 3.
    :return: paths relative to the partition, in the order of deletion: rows before the deletes of rows. A reader that
        takes a base without data files for none, as Trino does, goes on with what the base replaced.
    :raises ConfigurationError: ``write_ids`` is no cleaner's list.
    :raises UnsupportedTableError: a minor compaction was published by half; deleting would make that final.
    :raises AcidError: as :func:`~airflow_provider_acid.acid.directory.acid_directory` does; nothing is deletable then.
    """
    if write_ids.view is not WriteIdView.CLEANER:
        raise ConfigurationError("a cleaner", f"was given the list of a {write_ids.view.value}", "use cleaner_list")
    directory = acid_directory(listing, write_ids, txns, base_formats)
    found = half_published(directory)
    if found:
        raise half_published_error(str(write_ids.full_table_name), found)
    return tuple(sorted(_obsolete_or_aborted(directory), key=holds_deletes))


def deletable_of_replaced(
    listing: Listing,
    write_ids: ValidWriteIdList,
    replaced: Collection[str],
    base_formats: Mapping[str, str] = {},  # noqa: B006
) -> tuple[str, ...]:
    """What :func:`deletable` names on Hive 3, less what another compaction than the cleaned one replaced.

    Names of Hive 3 do not say which compaction made a directory: a later one's result may lie below the high-water
    mark of an earlier one's cleaning, and what it merged may still be needed by readers that began between the two.

    :param replaced: what the compaction itself merged or found obsolete or aborted, as it noted then.
    """
    return tuple(path for path in deletable(listing, write_ids, None, base_formats) if path in replaced)


def leftovers(
    listing: Listing,
    full_table_name: str,
    highest_write_id: int,
    base_formats: Mapping[str, str] = {},  # noqa: B006
) -> tuple[str, ...]:
    """What is still obsolete once every transaction is taken as committed: Hive's check after deleting.

    While there is any, readers still hold the row's cleaning up and ``mark_cleaned`` must not be sent.

    :param highest_write_id: the compaction's highest write id.
    """
    write_ids = ValidWriteIdList(full_table_name, highest_write_id, view=WriteIdView.CLEANER)
    return _obsolete_or_aborted(acid_directory(listing, write_ids, ValidTxnList(LONG_MAX), base_formats))


def highest_safe_write_id(directory_after: AcidDirectory, aborted: Iterable[int], highest: int) -> int | None:
    """The highest write id that may be reported as cleaned.

    Reporting makes the metastore forget aborted transactions up to it, and a forgotten one counts as committed. So it
    must stay below every aborted write id whose rows may still lie in a directory.

    :param directory_after: made from a listing taken after the deletion.
    :param aborted: all aborted write ids of the table.
    :param highest: the compaction's highest write id.
    :return: None: nothing may be reported, the row stays as it is.
    """
    spans = [_span_of_rows(directory) for directory in directory_after.directories]
    held = [
        write_id
        for write_id in aborted
        if write_id <= highest and any(minimum <= write_id <= maximum for minimum, maximum in spans)
    ]
    safe = min(held) - 1 if held else highest
    return safe if safe > 0 else None


def _obsolete_or_aborted(directory: AcidDirectory) -> tuple[str, ...]:
    return tuple(sorted({*directory.obsolete, *directory.aborted}))


def holds_deletes(path: str) -> bool:
    """Whether what lies at a path, relative to the partition, is a delete delta."""
    name = parse_directory_name(path) if "/" not in path else None
    return isinstance(name, DeltaName) and name.is_delete


def _span_of_rows(directory: BaseDirectory | DeltaDirectory) -> tuple[int, int]:
    """Write ids whose rows may lie in a directory; a compaction drops aborted rows one by one."""
    if isinstance(directory, BaseDirectory):
        # An overwrite's base holds nothing but its own write id.
        return _NOTHING if directory.compacted else (directory.write_id, directory.write_id)
    if directory.name.visibility_txn_id:
        return _NOTHING
    # On Hive 3, a compaction's delta has the same name as a streamed one, which keeps aborted rows.
    return directory.name.min_write_id, directory.name.max_write_id
