"""What a storage holds below one directory, as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class FileEntry:
    """A file: its path relative to the listed directory (``/`` as separator) and its size."""

    path: str
    size_bytes: int


@dataclass(frozen=True)
class Listing:
    """A recursive listing, sorted by path.

    :param files: every file below the directory, hidden ones (``_…``, ``.…``) included.
    :param directories: every directory below it, also empty ones, as relative paths without a trailing ``/``.
    """

    files: tuple[FileEntry, ...] = ()
    directories: tuple[str, ...] = ()

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
