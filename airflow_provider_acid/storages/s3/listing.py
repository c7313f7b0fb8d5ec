"""Keys as files and directories, as Hive sees them through S3A.

A zero-byte key that ends in ``/`` marks a directory. It is no file, and the directory exists although nothing else may
be in it: an INSERT OVERWRITE of no rows can leave a base of that kind, which hides all older rows, so that passing it
over would bring them back. (What Trino makes of a marker depends on its version.) A key that ends in ``_$folder$`` is
the marker of EMR and of ``s3n``; S3A passes it over, EMR does not. That makes no difference but for a base with nothing
else in it, which nobody can judge here, so it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.storages.s3.location import FOLDER_SUFFIX, is_marker


def listing_of(name: str, objects: Iterable[tuple[str, int]]) -> Listing:
    """The listing of a directory.

    :param name: its URI, as errors say it.
    :param objects: keys relative to the directory, and sizes; markers may be among them.
    :raises StorageError: whether a base exists depends on who looks.
    """
    found = sorted((key, size) for key, size in objects if key)
    files = tuple(FileEntry(key, size) for key, size in found if not is_marker(key, size))
    marked = (key[:-1] for key, _ in found if key.endswith("/"))
    directories = _with_parents((*(file.path.rpartition("/")[0] for file in files), *marked))
    for key, size in found:
        folder = key.removesuffix(FOLDER_SUFFIX)
        if is_marker(key, size) and _is_base(folder) and folder not in directories:
            raise StorageError(
                f"{name}/{key}",
                "marks an empty base for EMR, while Hive on S3A does not see it",
                "remove it if Hive shows rows without it, or else put an empty object named _empty into the base",
            )
    return Listing(files, tuple(sorted(directories)))


def _with_parents(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        while path and path not in found:
            found.add(path)
            path = path.rpartition("/")[0]
    return found


def _is_base(folder: str) -> bool:
    return folder.startswith("base_") and "/" not in folder
