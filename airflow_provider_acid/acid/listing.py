"""What a storage holds below one directory, as values."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from urllib.parse import quote

_KEPT_IN_URIS = frozenset(string.ascii_letters + string.digits + "_-!.~'()*:@&=+$,;/")
_ENCODED_CATEGORIES = ("Zs", "Zl", "Zp", "Cc")


@dataclass(frozen=True, order=True)
class FileEntry:
    """A file: its path relative to the listed directory (``/`` as separator) and its size."""

    path: str
    size_bytes: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Listing:
    """A recursive listing, sorted by path.

    :param files: every file below the directory, hidden ones (``_…``, ``.…``) included.
    :param directories: every directory below it, also empty ones, as relative paths without a trailing ``/``.
    """

    files: tuple[FileEntry, ...] = ()
    directories: tuple[str, ...] = ()

    @property
    def hidden_directories(self) -> tuple[str, ...]:
        """Names of the directories right below the listed one that no reader looks into, whoever made them."""
        return tuple([name for name in self.directories if name.startswith(("_", ".")) and "/" not in name])

    def below(self, directory: str) -> Listing:
        """The part of the listing below ``directory``, with paths relative to it."""
        prefix = directory + "/"
        return Listing(
            tuple(
                FileEntry(file.path[len(prefix) :], file.size_bytes)
                for file in self.files
                if file.path.startswith(prefix)
            ),
            tuple(name[len(prefix) :] for name in self.directories if name.startswith(prefix)),
        )

    def without(self, paths: Collection[str]) -> Listing:
        """The listing once these files, and these directories with all below them, are gone."""
        gone = frozenset(paths)
        return Listing(
            tuple(file for file in self.files if gone.isdisjoint(_with_parents(file.path))),
            tuple(name for name in self.directories if gone.isdisjoint(_with_parents(name))),
        )


def names_only(name: str) -> bool:
    """Of no directory it matters what lies in it."""
    return False


def _with_parents(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


def hive_path_order(path: str) -> bytes:
    """Sort key that puts paths into the order in which Hive sees them.

    Hadoop compares paths as URIs: percent-encoded where ``java.net.URI`` does so, and by 16 bit units. This order
    numbers the rows of original files, so a directory named ``a b`` comes after ``a!b``, and one with an emoji before
    one with a full-width letter.
    """
    return "".join(map(_in_uri, path)).encode("utf-16-be", "surrogatepass")


def _in_uri(character: str) -> str:
    if character in _KEPT_IN_URIS:
        return character
    if character > "\x7f" and unicodedata.category(character) not in _ENCODED_CATEGORIES:
        return character
    return quote(character, safe="")
