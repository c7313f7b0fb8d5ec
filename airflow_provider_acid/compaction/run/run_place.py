"""Where run directories lie, and how they are called.

By default in a place of the user's own on the first table's store, and never inside a table: whoever may write to one
of a batch's tables must not reach the plans of the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import uuid4

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.filesystem import Storage, Storages, join

RUNS_DIRECTORY = "_acid_runs"
"""Below a directory that somebody named. Must not begin like a staging directory: a later attempt removes those."""

_OWN_DIRECTORIES = (".airflow_acid", ".airflow_acid/runs")

_OF_NOBODY_KNOWN = "unknown"


@dataclass(frozen=True)
class RunPlace:
    """A directory of run directories.

    :param root: URI of a directory that is there, or that is the user's home.
    :param path: of the directory of all runs, below ``root``.
    :param own: the directories below ``root`` that are the user's own, down to ``path``; none where ``path`` is made
        with the rights that others have.
    """

    root: str
    path: str
    own: tuple[str, ...] = ()

    @classmethod
    def of(cls, storages: Storages, run_directory: str | None, table_location: str) -> RunPlace:
        """The place for the runs of a batch.

        :param run_directory: what the operator was told.
        :param table_location: of the first table.
        :raises ConfigurationError: there is no home directory.
        :raises StorageError: the table's store does not say where that is.
        """
        if run_directory is not None:
            return cls.in_directory(run_directory)
        return cls(storages.open(table_location).home(), _OWN_DIRECTORIES[-1], _OWN_DIRECTORIES)

    @classmethod
    def in_directory(cls, uri: str) -> RunPlace:
        """The place in a directory that somebody named."""
        return cls(uri, RUNS_DIRECTORY)

    @property
    def location(self) -> str:
        """URI of the directory of all runs."""
        return join(self.root, self.path)

    def make(self, storage: Storage) -> None:
        """Make the directory of all runs, or check that it is as it should be.

        :param storage: of ``root``.
        :raises RefusedError: it should be the user's own, and is not.
        :raises ConfigurationError: it cannot be made.
        """
        for path in self.own:
            storage.make_private(path)
        if not self.own:
            storage.make_directory(self.path)

    def check_usable(self, storages: Storages) -> None:
        """Check, without a change, that runs can be made here.

        :raises RefusedError: it should be the user's own, and is not.
        :raises ConfigurationError: it is not there and cannot be made, or this user may not write into it.
        """
        storage = storages.open(self.root)
        if not storage.rules.renames:
            return  # Directories of an object store are there by themselves, and its policies tell who may write.
        parent = self.root
        for path in self.own or (self.path,):
            if not storage.exists(path):
                break
            if self.own:
                storage.check_private(path)
            parent = join(self.root, path)
        if storages.open(parent).may_change() is False:
            raise ConfigurationError(
                self.location,
                f"is where compactions exchange plans and results, and {parent} is not there, or this user may not "
                "write into it",
                "make it for Airflow's user, or name another place by run_directory",
            )

    def check(self, storage: Storage) -> None:
        """Check that a directory of all runs that is there is as it should be.

        :param storage: of ``root``.
        :raises RefusedError: it should be the user's own, and is not.
        """
        for path in self.own:
            storage.check_private(path)


def run_name(metastore: str | None) -> str:
    """A name that no other run has, and that says which metastore knows whether its operator lives.

    :param metastore: id of its database; None where that is not known.
    """
    return f"{metastore or _OF_NOBODY_KNOWN}.{uuid4().hex}"


def is_run_of(name: str, metastore: str) -> bool:
    """Whether a run directory belongs to a metastore; one of an older release belongs to none."""
    return re.fullmatch(rf"{re.escape(metastore)}\.[0-9a-f]{{32}}", name) is not None
