"""Deleting by way of a directory that was made before anybody looked, so that nothing else of the same name goes.

A cleaner may fall asleep between its decision and the deletion, and the table be dropped and made again meanwhile, with
write ids that begin anew and directories of the very names it decided upon. So they are first renamed into a hidden
directory inside the partition: it is gone with the old table, and the renames have no target. Readers that ignore
transactions see each directory whole or not at all.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Iterable
from types import TracebackType

from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.exceptions import AcidError, OwnershipLostError, StorageError
from airflow_provider_acid.filesystem import Storage

STALE_SECONDS = 3600.0
"""So old a directory is that a dead cleaner must have left it; younger ones may be another cleaner's at work."""

_NAME = re.compile(r"_acid_cleaning_([0-9]{1,18})_[0-9a-f]{32}")
"""With the time at which it was made, in seconds since 1970."""

log = logging.getLogger(__name__)


class Discard:
    """A directory for what one cleaning deletes; made at the begin of the block and removed at its end."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.name = f"_acid_cleaning_{int(time.time())}_{uuid.uuid4().hex}"

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

        :raises OwnershipLostError: this directory is gone: it is another table now.
        :raises StorageError: one cannot be deleted.
        """
        for place, name in enumerate(names):
            try:
                self._storage.publish(name, f"{self.name}/{place}")
            except StorageError as error:
                if not self._storage.exists(self.name):
                    raise OwnershipLostError(
                        self._storage.location,
                        f"was dropped and made again while it was cleaned: {self.name} is gone",
                        "look again; nothing that appeared since was deleted",
                    ) from error
                if self._storage.exists(name):
                    raise
        self._storage.delete([self.name])


def dead_discards(listing: Listing) -> tuple[str, ...]:
    """Names of such directories that dead cleaners left in a partition, with what they were about to delete."""
    begun = ((name, _NAME.fullmatch(name)) for name in listing.directories)
    return tuple(name for name, match in begun if match and time.time() - int(match[1]) > STALE_SECONDS)
