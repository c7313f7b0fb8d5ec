"""One consistent look at a partition: transactions, then write ids, then the directory."""

from __future__ import annotations

import json
from dataclasses import dataclass

from airflow_provider_acid.acid.directory import AcidDirectory, acid_directory
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.names import METADATA_FILE, BaseName, parse_directory_name
from airflow_provider_acid.acid.write_ids import ValidTxnList, ValidWriteIdList, compactor_list
from airflow_provider_acid.exceptions import CorruptFileError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.metastore.client import AcidMetastoreClient


@dataclass(frozen=True)
class Snapshot:
    """What a compactor may see of one partition.

    :param write_ids: the compactor's view: nothing open, nothing above the lowest open write id.
    """

    txns: ValidTxnList
    write_ids: ValidWriteIdList
    listing: Listing
    directory: AcidDirectory


def take_snapshot(
    client: AcidMetastoreClient, full_table_name: str, storage: Storage, own_txn_id: int | None = None
) -> Snapshot:
    """Look at a partition as Hive's Worker does.

    The order matters and is safe: whatever opens or commits in between counts as open.

    :param own_txn_id: the compaction's own transaction; it and all later ones are left out of the view.
    """
    txns = current_txns(client)
    if own_txn_id is not None:
        txns = txns.as_of(own_txn_id)
    table_write_ids = client.valid_write_ids([full_table_name], str(txns))[0]
    write_ids = compactor_list(table_write_ids)
    listing = storage.list()
    directory = acid_directory(listing, write_ids, txns, read_base_formats(storage, listing))
    return Snapshot(txns, write_ids, listing, directory)


def current_txns(client: AcidMetastoreClient) -> ValidTxnList:
    """The open and aborted transactions of this moment."""
    now = client.open_transactions()
    return ValidTxnList(now.high_water_mark, now.open, now.aborted)


def read_base_formats(storage: Storage, listing: Listing) -> dict[str, str]:
    """``dataFormat`` of every base directory that has a ``_metadata_acid`` file and no visibility transaction.

    :raises CorruptFileError: such a file is not what Hive writes.
    """
    formats: dict[str, str] = {}
    for file in listing.files:
        directory, _, name = file.path.rpartition("/")
        if name != METADATA_FILE or "/" in directory:
            continue
        parsed = parse_directory_name(directory)
        if isinstance(parsed, BaseName) and not parsed.visibility_txn_id:
            formats[directory] = _data_format(storage, file.path)
    return formats


def _data_format(storage: Storage, path: str) -> str:
    try:
        value = json.loads(storage.read(path))["dataFormat"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(
            join(storage.location, path),
            f"is not a {METADATA_FILE} file of Hive ({error!r})",
            "find out who wrote the directory before compacting it",
        ) from error
    return str(value)
