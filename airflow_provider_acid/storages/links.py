"""Symbolic links above a table's files: those of an administrator are followed, those of a table's writer are not."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Container

_MOST_LINKS = 40
"""As many as Linux follows."""

_GONE = " (deleted)"
"""What Linux puts after the path of something that was removed while it was open."""


def untrusted_link(path: str, trusted_users: Container[int]) -> str | None:
    """The first link on the way to a path that somebody made who is not trusted, or that is one too many; None where
    there is none.

    Whoever may write into a table's directory could put a link to another table there in a partition's place, and have
    that one merged and cleaned. The rule is that of Linux's ``protected_symlinks``.

    :param path: absolute.
    :param trusted_users: ids of users whose links are followed.
    :raises OSError: a part of the way may not be looked at.
    """
    if _is_real(path):
        return None
    links = 0
    way, below = "", path.split("/")
    while below:
        name = below.pop(0)
        if name in ("", "."):
            continue
        if name == "..":
            way = way.rpartition("/")[0]
            continue
        place = f"{way}/{name}"
        try:
            seen = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISLNK(seen.st_mode):
            way = place
            continue
        links += 1
        if seen.st_uid not in trusted_users or links > _MOST_LINKS:
            return place
        target = os.readlink(place)
        if target.startswith("/"):
            way = ""
        below = target.split("/") + below
    return None


def _is_real(path: str) -> bool:
    """Whether a path goes through no link, for the kernel ends where it says; False where that is not to be known.

    Three system calls, where a look at each part of the way takes a dozen.
    """
    if sys.platform != "linux" or path.endswith(_GONE):
        return False
    try:
        place = os.open(path, os.O_PATH)
        try:
            return os.readlink(f"/proc/self/fd/{place}") == path
        finally:
            os.close(place)
    except OSError:
        return False
