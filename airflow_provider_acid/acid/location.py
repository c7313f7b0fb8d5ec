"""Where tables and partitions lie, in a form in which two spellings of one directory are equal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from airflow_provider_acid.acid.entity import Entity

_URI = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?(.*)", re.DOTALL)

_SCHEMES = {"s3": "s3a", "s3n": "s3a", "webhdfs": "hdfs", "swebhdfs": "hdfs"}
"""Several ways to one store."""


@dataclass(frozen=True)
class Directory:
    """A directory by its URI, whose spelling does not matter.

    :param store: scheme and authority in lower case; the schemes of S3 are one, and so are those of HDFS, whose ports
        differ by protocol and do not count.
    :param path: names from the root down, without empty ones and dots.
    """

    store: tuple[str, str]
    path: tuple[str, ...]

    @classmethod
    def of(cls, uri: str) -> Directory:
        """The directory behind a URI or a path; nothing in it is escaped, as in Hive's locations."""
        match = _URI.fullmatch(uri.strip())
        assert match is not None, "every text matches"
        scheme, authority = (match[1] or "").lower(), (match[2] or "").lower()
        scheme = _SCHEMES.get(scheme, scheme)
        names: list[str] = []
        for name in match[3].split("/"):
            if name == "..":
                del names[-1:]
            elif name not in ("", "."):
                names.append(name)
        return cls((scheme, authority.partition(":")[0] if scheme == "hdfs" else authority), tuple(names))

    def __str__(self) -> str:
        scheme, authority = self.store
        path = "/" + "/".join(self.path)
        return f"{scheme}://{authority}{path}" if scheme or authority else path

    def child(self, path: str) -> Directory:
        """What lies below it under this relative path."""
        return Directory(self.store, (*self.path, *filter(None, path.split("/"))))

    def holds(self, other: Directory) -> bool:
        """Whether it is another directory, or that lies below it."""
        return self.store == other.store and self.path == other.path[: len(self.path)]

    @property
    def above(self) -> Iterator[Directory]:
        """All directories that it lies in, the next one first."""
        return (Directory(self.store, self.path[:end]) for end in range(len(self.path) - 1, -1, -1))


class Occupied:
    """Whose a directory is: one look for however many questions.

    :param owners: tables or partitions with the URIs of their directories; those without a directory (views) do not
        count.
    """

    def __init__(self, owners: Iterable[tuple[Entity, str]]) -> None:
        self._at: dict[Directory, list[tuple[Entity, str]]] = {}
        self._below: dict[Directory, list[tuple[Entity, str]]] = {}
        for entity, uri in owners:
            if uri:
                self._add(entity, uri)

    def _add(self, entity: Entity, uri: str) -> None:
        directory = Directory.of(uri)
        self._at.setdefault(directory, []).append((entity, uri))
        for above in directory.above:
            below = self._below.setdefault(above, [])
            # Of two owners at least one is another than the one who asks.
            if len(below) < 2 and all(entity != owner for owner, _ in below):
                below.append((entity, uri))

    def other(self, directory: Directory, own: Entity) -> tuple[Entity, str] | None:
        """Another than ``own`` at, above or below a directory, and its URI; None where there is none."""
        found = (
            *self._at.get(directory, ()),
            *(owner for above in directory.above for owner in self._at.get(above, ())),
            *self._below.get(directory, ()),
        )
        return next((owner for owner in found if owner[0] != own), None)
