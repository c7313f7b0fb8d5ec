"""Whether what a compaction published and never committed is the last copy of its rows, as far as names tell.

What a compaction merged is deleted only after a commit that covers it: this compaction's, another's, or that of an
INSERT OVERWRITE or TRUNCATE. So beside a result that was not committed there is either what it was made of, or what
replaced that. Where neither is, somebody deleted too much, and nobody else has the rows.

Names tell that everything is gone, not that a part is. Of the two directories of a minor either may have sources of the
other's kind alone: Hive's own worker publishes both, and one of them holds no event then.
"""

from __future__ import annotations

from collections.abc import Collection

from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.names import BaseName, DeltaName, is_hidden, parse_directory_name


def is_held_elsewhere(listing: Listing, published: Collection[str], uncommitted: Collection[int]) -> bool:
    """Whether anything that readers read may hold the rows of a result.

    :param listing: of the partition; names right in it are enough.
    :param published: names of the result's directories.
    :param uncommitted: transactions of compactions that are open or aborted: nobody reads what these published.
    """
    paths = [path for path in listing.directories if "/" not in path and not is_hidden(path)]
    names = [parse_directory_name(path) for path in paths if path not in published]
    others = [name for name in names if name is None or name.visibility_txn_id not in uncommitted]
    if any("/" not in file.path and not is_hidden(file.path) for file in listing.files):
        others.append(None)
    return any(_may_hold(other, parse_directory_name(result)) for result in published for other in others)


def _may_hold(other: BaseName | DeltaName | None, result: BaseName | DeltaName | None) -> bool:
    """Whether a directory may be a source of a result, or may have replaced its sources.

    :param other: None for files from before the table became transactional.
    """
    if isinstance(result, DeltaName):
        if isinstance(other, DeltaName):
            return other.min_write_id <= result.max_write_id and result.min_write_id <= other.max_write_id
        # A minor's sources lie above the base.
        return other is not None and other.write_id >= result.min_write_id
    if isinstance(other, DeltaName):
        return result is not None and not other.is_delete and other.min_write_id <= result.write_id
    # A base of whatever write id: a lower one is a source, or names the highest of its rows, not what its writer saw.
    return True
