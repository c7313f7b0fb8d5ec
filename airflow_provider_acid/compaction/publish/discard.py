"""Deleting by way of something that was made before anybody looked, so that nothing else of the same name goes.

A cleaner may fall asleep between its decision and the deletion, and the table be dropped and made again meanwhile, with
write ids that begin anew and directories of the very names it decided upon. So before it looks it makes a hidden
directory inside the partition, which goes with the old table:

- where there are renames, what is deleted is first renamed into it, and without it the renames have no target. Readers
  that ignore transactions see each directory whole or not at all.
- where there are none, every deletion is bound to a file in it, and is not carried out once that is gone.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable
from itertools import groupby, islice
from types import TracebackType

from airflow_provider_acid.exceptions import AcidError, OwnershipLostError, StorageError
from airflow_provider_acid.filesystem import ObjectStorage, Storage
from airflow_provider_acid.plan.obsolete import holds_deletes

DISCARD_PREFIX = "_acid_cleaning_"
"""Begin of the names of these directories."""

_TAKEN_TOGETHER = 8
"""Directories that go between two looks at the lock, where each file goes by itself."""

log = logging.getLogger(__name__)


class Discard:
    """A directory for what one cleaning deletes; made at the begin of the block and removed at its end.

    :param storage: of the partition.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.name = DISCARD_PREFIX + uuid.uuid4().hex
        self._is_gone = False

    def __enter__(self) -> Discard:
        self._storage.make_directory(self.name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self._is_gone:
                self._storage.delete([self.name])
        except AcidError as failure:
            log.warning("%s: what was deleted lies in %s, which stays: %s", self._storage.location, self.name, failure)

    def take(self, names: Iterable[str], check: Callable[[], None]) -> None:
        """Take away directories and files right below the location, in this order; missing ones are no error.

        A power cut may bring them back until the storage is flushed, but no rows without the deletes of rows.

        :param check: called before each; what it raises ends it.
        :raises OwnershipLostError: this directory is gone: it is another table now, or somebody else cleans it.
        :raises StorageError: one cannot be taken.
        """
        for are_deletes, some in groupby(enumerate(names), key=lambda one: holds_deletes(one[1])):
            if are_deletes:
                self._storage.flush()
            for place, name in some:
                check()
                try:
                    self._storage.move(name, f"{self.name}/{place}")
                except StorageError as error:
                    if not self._storage.exists(self.name):
                        raise self._lost() from error
                    if self._storage.exists(name):
                        raise

    def empty(self) -> None:
        """Delete what was taken, after which nothing more can be.

        :raises StorageError: it cannot be deleted.
        """
        self._storage.delete([self.name])
        self._is_gone = True

    def _lost(self) -> OwnershipLostError:
        return OwnershipLostError(
            self._storage.location,
            f"was dropped and made again, or is cleaned by somebody else: {self.name} is gone",
            "look again; nothing that appeared since was deleted",
        )


class AnchoredDiscard(Discard):
    """The same where there are no renames: the directory holds a file to which each deletion is bound."""

    def __init__(self, storage: ObjectStorage) -> None:
        super().__init__(storage)
        self._objects = storage
        self._anchor = f"{self.name}/anchor"

    def __enter__(self) -> Discard:
        self._objects.write_new(self._anchor, b"")
        return self

    def take(self, names: Iterable[str], check: Callable[[], None]) -> None:
        """Delete a few directories after the others, with errors as of :meth:`Discard.take`.

        None with rows together with one that says which of them are deleted.
        """
        for _, some in groupby(names, key=holds_deletes):
            while together := list(islice(some, _TAKEN_TOGETHER)):
                check()
                if not self._objects.delete_while_exists(self._anchor, together):
                    raise self._lost()
