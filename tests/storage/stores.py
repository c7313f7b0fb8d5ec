"""What the behaviour suite knows of a store: how it is opened, and what can be done behind the storage's back."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Protocol

from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.database_server import NOBODY

CUT_READ_BYTES = 50_000
"""How much of a file's data arrives before the connection breaks."""


@dataclass(frozen=True)
class Promises:
    """What a kind of store has and keeps; ``docs/storage.md`` has the same table.

    :param atomic_publish: a directory appears under its new name at once, with all that is in it.
    :param directories: an empty directory exists, and a file needs its directory.
    :param rights: a directory can be closed to the storage's user while others are open.
    :param symbolic_links: there may be some, and they are refused.
    :param colons: names may hold them.
    :param network: requests and replies may get lost.
    :param short_replies: a whole reply that is shorter than what was asked for is no data of the file.
    """

    atomic_publish: bool = True
    directories: bool = True
    rights: bool = True
    symbolic_links: bool = False
    colons: bool = False
    network: bool = True
    short_replies: bool = True


class Call(Enum):
    """What a storage asks a server for; the end of a file's data is part of ``WRITE``."""

    WRITE = "write"
    RENAME = "rename"
    DELETE = "delete"
    MAKE_DIRECTORY = "make directory"
    LIST = "list"
    READ = "read"


class Event(Protocol):
    """What is to happen once, in the network."""

    @property
    def has_happened(self) -> bool:
        """Whether it did."""


class Store(ABC):
    """One kind of storage at a location of its own, which exists, is empty and may be written to.

    :cvar promises: what the kind has and keeps.
    :cvar scheme: what all its locations begin with.
    :param location: as the metastore would keep it.
    """

    promises: ClassVar[Promises]
    scheme: ClassVar[str]

    def __init__(self, location: str) -> None:
        self.location = location

    @cached_property
    def storage(self) -> Storage:
        """A storage at the location."""
        return self.open()

    def uri(self, path: str) -> str:
        """What errors call a file or directory."""
        return join(self.location, path) if path else self.location

    @abstractmethod
    def open(self, below: str = "") -> Storage:
        """A new storage, at the location or at a directory below it, there or not."""

    @abstractmethod
    def plant(self, files: Mapping[str, bytes]) -> None:
        """Puts files there, with their directories; what is there is replaced."""

    @abstractmethod
    def plant_directory(self, path: str) -> None:
        """Makes an empty directory and its parents."""

    @abstractmethod
    def take_away(self, path: str) -> None:
        """Removes a file, or a directory with all below it."""

    @abstractmethod
    def names(self) -> set[str]:
        """The paths of all that is there; those of directories end in ``/``."""

    @abstractmethod
    def content(self, path: str) -> bytes:
        """The bytes of a file."""

    @abstractmethod
    def fetched_bytes(self) -> int:
        """How many bytes this process has read so far, from files of the store above all."""

    @abstractmethod
    def without_rights(self, path: str) -> AbstractContextManager[None]:
        """Within the block the storage's user may do nothing in a directory, not even look."""


class NetworkStore(Store):
    """A store behind a network that can be told to misbehave.

    Where the protocol shows them, events happen to calls that name ``name``, else to the first of their kind.
    """

    @abstractmethod
    def lose_request(self, call: Call, name: str) -> Event:
        """The connection breaks before the server hears of a call."""

    @abstractmethod
    def lose_reply(self, call: Call, name: str, *, and_all_after_it: bool = False) -> Event:
        """The server does what it was asked for, and the connection breaks before it can say so.

        :param and_all_after_it: whether nothing gets through from then on.
        """

    @abstractmethod
    def do_before(self, call: Call, name: str, action: Callable[[], object]) -> Event:
        """Something happens after a call was made and before the server gets it."""

    @abstractmethod
    def cut_write(self, name: str) -> Event:
        """The connection breaks in the midst of a file of some megabytes."""

    @abstractmethod
    def cut_read(self, name: str) -> Event:
        """The connection breaks in the midst of the data of a file that is larger than :data:`CUT_READ_BYTES`."""

    @abstractmethod
    def refusing(self) -> AbstractContextManager[None]:
        """Within the block connections break as soon as they are made."""

    @abstractmethod
    def silent(self) -> AbstractContextManager[None]:
        """Within the block the server takes connections and requests and says nothing."""


class LocalStore(Store):
    """A directory of this machine."""

    promises = Promises(symbolic_links=True, colons=True, network=False, short_replies=False)
    scheme = "/"

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self.root = folder

    def open(self, below: str = "") -> Storage:
        """See :meth:`Store.open`."""
        return LocalStorage(self.uri(below))

    def plant(self, files: Mapping[str, bytes]) -> None:
        """See :meth:`Store.plant`."""
        for path, data in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(data)

    def plant_directory(self, path: str) -> None:
        """See :meth:`Store.plant_directory`."""
        (self.root / path).mkdir(parents=True)

    def take_away(self, path: str) -> None:
        """See :meth:`Store.take_away`."""
        victim = self.root / path
        if victim.is_dir():
            shutil.rmtree(victim)
        else:
            victim.unlink()

    def names(self) -> set[str]:
        """See :meth:`Store.names`."""
        return {f"{path.relative_to(self.root)}{'/' if path.is_dir() else ''}" for path in self.root.rglob("*")}

    def content(self, path: str) -> bytes:
        """See :meth:`Store.content`."""
        return (self.root / path).read_bytes()

    def fetched_bytes(self) -> int:
        """See :meth:`Store.fetched_bytes`."""
        return read_by_this_process()

    @contextmanager
    def without_rights(self, path: str) -> Iterator[None]:
        """See :meth:`Store.without_rights`; root has all rights, and is somebody else for a while."""
        directory, user = self.root / path, os.geteuid()
        mode = directory.stat().st_mode
        directory.chmod(0)
        try:
            if user == 0:
                os.seteuid(NOBODY)
            yield
        finally:
            os.seteuid(user)
            directory.chmod(mode)


def read_by_this_process() -> int:
    """Bytes that came by ``read``, from files and, to a JVM within this process, from connections."""
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["rchar"])
