"""Half of a pair on Hive 3, where every reader sees it: put back into the staging directory it came from.

Names of Hive 3 tell no transaction: a later attempt's result may have the very name of the half, and whoever was
asleep while that appeared must not touch it. A rename back into the staging directory is its own fence: the directory
belongs to whoever renamed it last (:func:`~.staging.take_over`), and for everybody else the rename has no target.
"""

from __future__ import annotations

import logging

from airflow_provider_acid.acid.names import DeltaName, parse_directory_name
from airflow_provider_acid.compaction.publish.journal import read_journal
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.filesystem import Storage
from airflow_provider_acid.plan.exchange import OUTPUTS_DIRECTORY
from airflow_provider_acid.plan.plan import OutputKind

log = logging.getLogger(__name__)


def take_back_half(storage: Storage, staging: str) -> None:
    """Undo the first of two renames if the second did not follow; a whole pair stays.

    The output is complete again after it, and of use to the next attempt. Where somebody else has taken the directory
    over meanwhile, nothing is done, for that one does it.

    :param staging: name of a dead attempt's staging directory, taken over by the caller.
    :raises StorageError: it cannot be undone.
    """
    journal = read_journal(storage, staging)
    if journal is None:
        return
    staged = {target: f"{staging}/{OUTPUTS_DIRECTORY}/{_kind(target).value}" for target in journal.targets}
    renamed = [target for target, path in staged.items() if not storage.exists(path)]
    if len(renamed) == len(staged):
        return
    for target in renamed:
        log.info("%s: taking back %s, whose other half is missing", storage.location, target)
        try:
            storage.publish(target, staged[target])
        except StorageError:
            if storage.exists(staging) and storage.exists(target):
                raise


def _kind(target: str) -> OutputKind:
    name = parse_directory_name(target)
    return OutputKind.DELETES if isinstance(name, DeltaName) and name.is_delete else OutputKind.ROWS
