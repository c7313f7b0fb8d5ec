"""Deleting by way of a directory that was made before anybody looked, so that nothing else of the same name goes.

A cleaner may fall asleep between its decision and the deletion, and the table be dropped and made again meanwhile, with
write ids that begin anew and directories of the very names it decided upon. So they are first renamed into a hidden
directory inside the partition: it is gone with the old table, and the renames have no target. Readers that ignore
transactions see each directory whole or not at all.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from types import TracebackType

from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.compaction.staging import remove_whole
from airflow_provider_acid.exceptions import AcidError, OwnershipLostError, StorageError
from airflow_provider_acid.filesystem import Storage

DISCARD_PREFIX = "_acid_cleaning_"
"""Begin of the names of these directories."""

log = logging.getLogger(__name__)


class Discard:
    """A directory for what one cleaning deletes; made at the begin of the block and removed at its end."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.name = DISCARD_PREFIX + uuid.uuid4().hex

    def __enter__(self) -> Discard:
        self._storage.make_directory(self.name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._storage.delete([self.name])
        except AcidError as failure:
            log.warning("%s: what was deleted lies in %s, which stays: %s", self._storage.location, self.name, failure)

    def delete(self, names: Iterable[str]) -> None:
        """Delete directories and files right below the location; missing ones are no error.

        :raises OwnershipLostError: this directory is gone: it is another table now, or somebody else cleans it.
        :raises StorageError: one cannot be deleted.
        """
        for place, name in enumerate(names):
            try:
                self._storage.publish(name, f"{self.name}/{place}")
            except StorageError as error:
                if not self._storage.exists(self.name):
                    raise OwnershipLostError(
                        self._storage.location,
                        f"was dropped and made again, or is cleaned by somebody else: {self.name} is gone",
                        "look again; nothing that appeared since was deleted",
                    ) from error
                if self._storage.exists(name):
                    raise
        self._storage.delete([self.name])


def remove_discards(storage: Storage, listing: Listing, own: Discard | None = None) -> tuple[str, ...]:
    """Remove such directories of others, with what they were about to delete; dead cleaners leave them.

    A living one loses its directory by one rename, finds that out at its next one, and looks again later.

    :param own: the caller's.
    :returns: what was removed.
    """
    others = [name for name in listing.directories if name.startswith(DISCARD_PREFIX) and "/" not in name]
    found = tuple(name for name in others if own is None or name != own.name)
    for name in found:
        remove_whole(storage, name)
    return found
