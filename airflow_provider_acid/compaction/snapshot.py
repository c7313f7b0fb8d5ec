"""One consistent look at a partition: transactions, then write ids, then the directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from airflow_provider_acid.acid.directory import AcidDirectory, acid_directory, base_format_files
from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.names import parse_data_format, parse_directory_name, parse_flush_length
from airflow_provider_acid.acid.write_ids import ValidTxnList, ValidWriteIdList, compactor_list
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient

MOST_LOOKS = 5
"""How often a partition is looked at whose bases go meanwhile."""


@dataclass(frozen=True)
class Snapshot:
    """What a compactor may see of one partition.

    :param newest_txn_id: the highest transaction id at that moment, whether or not it is seen.
    :param write_ids: the compactor's view: nothing open, nothing above the lowest open write id.
    :param flush_lengths: committed bytes by path of each ``_flush_length`` file of the current directories.
    """

    txns: ValidTxnList
    newest_txn_id: int
    write_ids: ValidWriteIdList
    listing: Listing
    directory: AcidDirectory
    flush_lengths: Mapping[str, int]


class TransactionView:
    """The transactions of one moment, and write ids as these show them; each table's are asked for once.

    :param own_txn_id: the compaction's own transaction; it and all later ones are left out. Of several that look
        together the lowest.
    """

    def __init__(self, client: AcidMetastoreClient, own_txn_id: int | None) -> None:
        self._client = client
        self._own_txn_id = own_txn_id
        self._write_ids: dict[str, ValidWriteIdList] = {}

    @cached_property
    def _now(self) -> ValidTxnList:
        return current_txns(self._client)

    @property
    def newest_txn_id(self) -> int:
        """The highest transaction id, whether or not it is seen."""
        return self._now.high_water_mark

    def of_one(self, txn_id: int) -> TransactionView:
        """What one of several that look together sees by itself, by a look of its own."""
        return TransactionView(self._client, txn_id)

    def misses_a_compaction(self, directory: AcidDirectory, txn_id: int) -> bool:
        """Whether a partition holds the result of a compaction that only one of several that look together sees.

        :param directory: by this view.
        :param txn_id: that one's transaction.
        """
        if self._own_txn_id is None:
            return False
        names = map(parse_directory_name, directory.invisible)
        return any(name is not None and self._own_txn_id < name.visibility_txn_id < txn_id for name in names)

    @cached_property
    def txns(self) -> ValidTxnList:
        """What is seen."""
        return self._now if self._own_txn_id is None else self._now.as_of(self._own_txn_id)

    def write_ids(self, full_table_name: str) -> ValidWriteIdList:
        """The compactor's view of a table's."""
        if full_table_name not in self._write_ids:
            found = self._client.valid_write_ids([full_table_name], str(self.txns))[0]
            self._write_ids[full_table_name] = compactor_list(found)
        return self._write_ids[full_table_name]


def take_snapshot(
    view: TransactionView,
    full_table_name: str,
    storage: Storage,
    hive: Hive,
    *,
    insert_only: bool = False,
    own_txn_id: int | None = None,
) -> Snapshot:
    """Look at a partition as Hive's Worker does.

    The order matters and is safe: whatever opens or commits in between counts as open.

    Of several that look together, the first one's transaction may be older than another's claim. A compaction that was
    carried out there in between is not seen then, and its Cleaner may delete what it merged: Hive's waits for no lock,
    and at most for the first one, which may have ended. What is merged without these rows would hide them. So such a
    partition is looked at by itself.

    :param view: no older than the locks on the partition.
    :param insert_only: see :func:`~airflow_provider_acid.acid.directory.acid_directory`.
    :param own_txn_id: the compaction's own transaction, where the view is of several that look together.
    """
    txns = view.txns
    write_ids = view.write_ids(full_table_name)
    listing, formats = list_with_base_formats(storage)
    visibility = hive.visibility(txns)
    directory = acid_directory(listing, write_ids, visibility, formats, insert_only=insert_only)
    if own_txn_id is not None and view.misses_a_compaction(directory, own_txn_id):
        return take_snapshot(view.of_one(own_txn_id), full_table_name, storage, hive, insert_only=insert_only)
    flush_lengths = read_flush_lengths(storage, directory)
    return Snapshot(txns, view.newest_txn_id, write_ids, listing, directory, flush_lengths)


def current_txns(client: AcidMetastoreClient) -> ValidTxnList:
    """The open and aborted transactions of this moment."""
    now = client.open_transactions()
    return ValidTxnList(now.high_water_mark, now.open, now.aborted)


def list_with_base_formats(
    storage: Storage, into: Callable[[str], bool] | None = None
) -> tuple[Listing, dict[str, str]]:
    """A listing, and what :func:`read_base_formats` finds by it.

    A Cleaner, Hive's or ours, may delete a base between the two; then both are looked at again.

    :param into: see :meth:`~airflow_provider_acid.filesystem.Storage.list`.
    :raises StorageError: a directory or file cannot be read.
    :raises CorruptFileError: a ``_metadata_acid`` file is not what Hive writes.
    """
    listing = storage.list(into=into)
    for _ in range(MOST_LOOKS - 1):
        try:
            return listing, read_base_formats(storage, listing)
        except StorageError:
            again = storage.list(into=into)
            if set(base_format_files(listing)) <= {file.path for file in again.files}:
                raise
            listing = again
    return listing, read_base_formats(storage, listing)


def read_base_formats(storage: Storage, listing: Listing) -> dict[str, str]:
    """``dataFormat`` of the base directories of which a listing alone does not tell who wrote them.

    :raises StorageError: a file of the listing is not there any more, or cannot be read.
    :raises CorruptFileError: a ``_metadata_acid`` file is not what Hive writes.
    """
    formats: dict[str, str] = {}
    for path in base_format_files(listing):
        content = storage.read(path)
        formats[path.rpartition("/")[0]] = parse_data_format(content, join(storage.location, path))
    return formats


def read_flush_lengths(storage: Storage, directory: AcidDirectory) -> dict[str, int]:
    """What streaming writers that did not close their files committed of them, by path of the side file.

    :raises CorruptFileError: a side file is empty or damaged; Hive's readers fail on it, too.
    """
    return {
        path: parse_flush_length(storage.read(path), join(storage.location, path))
        for path in directory.flush_length_files
    }
