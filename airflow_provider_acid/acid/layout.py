"""What lies in a partition's directory, sorted by kind and not yet judged: bases, deltas, everything else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from airflow_provider_acid.acid.listing import FileEntry, Listing, hive_path_order
from airflow_provider_acid.acid.names import (
    COMPACTED,
    DATA_FORMATS,
    METADATA_FILE,
    BaseName,
    DeltaName,
    has_hidden_part,
    is_acid_prefixed,
    is_hidden,
    parse_directory_name,
)
from airflow_provider_acid.exceptions import ConfigurationError, UnknownNameError, UnsupportedTableError

_by_path = attrgetter("path")


@dataclass(frozen=True)
class BaseDirectory:
    """A ``base_…`` directory.

    :param path: the directory's name as it is on storage (it may be padded differently from ``str(name)``).
    :param files: its files that are not hidden, at any depth, relative to the partition.
    :param subdirectories: directories below it that are not hidden, relative to the partition.
    :param size_bytes: of the files directly in it.
    :param compacted: whether a compaction wrote it; else INSERT OVERWRITE, TRUNCATE or DROP PARTITION did.
    """

    name: BaseName
    path: str
    files: tuple[FileEntry, ...]
    subdirectories: tuple[str, ...]
    size_bytes: int
    compacted: bool

    @property
    def write_id(self) -> int:
        """The write id up to which it holds the partition's state."""
        return self.name.write_id


@dataclass(frozen=True)
class DeltaDirectory:
    """A ``delta_…`` or ``delete_delta_…`` directory; parameters as in :class:`BaseDirectory`."""

    name: DeltaName
    path: str
    files: tuple[FileEntry, ...]
    subdirectories: tuple[str, ...]
    size_bytes: int


@dataclass(frozen=True)
class PartitionLayout:
    """The visible content of a partition's directory.

    :param bases: by path, as the deltas are; so both together are as well.
    :param deltas: of both kinds.
    :param original_files: files that are in no ACID directory, in Hive's order of their paths.
    :param original_directories: directories right below the partition that are no ACID directories.
    """

    bases: tuple[BaseDirectory, ...]
    deltas: tuple[DeltaDirectory, ...]
    original_files: tuple[FileEntry, ...]
    original_directories: tuple[str, ...]


def base_format_files(listing: Listing) -> tuple[str, ...]:
    """The ``_metadata_acid`` files a caller must read before it calls :func:`acid_directory`.

    Not those of bases whose names tell that a compaction made them; nor does Hive read these.

    :return: paths relative to the partition; the directory part of each is the key of ``base_formats``.
    :raises UnknownNameError: the base's name is none.
    """
    return tuple(
        [
            file.path
            for file in listing.files
            if file.path.startswith("base_")
            and file.path.endswith("/" + METADATA_FILE)
            and file.path.count("/") == 1
            and not _is_named_after_a_compaction(file.path.partition("/")[0])
        ]
    )


def _is_named_after_a_compaction(base: str) -> bool:
    name = parse_directory_name(base)
    return name is not None and name.visibility_txn_id > 0


def partition_layout(listing: Listing, base_formats: Mapping[str, str]) -> PartitionLayout:
    """Sort a listing by kind; parameters and errors as in ``acid_directory``."""
    children, loose = _children(listing)
    bases: list[BaseDirectory] = []
    deltas: list[DeltaDirectory] = []
    others: list[str] = []
    for path, (files, nested) in sorted(children.items()):
        name = parse_directory_name(path)
        if name is None:
            others.append(path)
            continue
        # Every visible directory above a file is among the nested ones: without any, all files are right here.
        size_bytes = sum([file.size_bytes for file in files if not nested or file.path.count("/") == 1])
        if isinstance(name, DeltaName):
            deltas.append(DeltaDirectory(name, path, tuple(files), nested, size_bytes))
        else:
            compacted = name.visibility_txn_id > 0 or _data_format(path, base_formats) == COMPACTED
            bases.append(BaseDirectory(name, path, tuple(files), nested, size_bytes, compacted))
    if bases:
        _check_formats_read(listing, base_formats)
    if others:
        _refuse_nested_tables(others, listing)
    originals = [*loose, *(file for path in others for file in children[path][0])]
    originals.sort(key=lambda file: hive_path_order(file.path))
    return PartitionLayout(tuple(bases), tuple(deltas), tuple(originals), tuple(others))


def _children(listing: Listing) -> tuple[dict[str, tuple[list[FileEntry], tuple[str, ...]]], list[FileEntry]]:
    """Visible files and directories in each directory right below the partition, empty ones included; other files."""
    files: dict[str, list[FileEntry]] = {}
    nested: dict[str, set[str]] = {}
    loose: list[FileEntry] = []
    for name in listing.directories:
        if not has_hidden_part(name):
            top, is_nested, _ = name.partition("/")
            files.setdefault(top, [])
            if is_nested:
                nested.setdefault(top, set()).add(name)
    for file in sorted(listing.files, key=_by_path):
        path = file.path
        top, is_below, rest = path.partition("/")
        if is_hidden(top):
            continue
        if not is_below:
            loose.append(file)
            continue
        found = files.setdefault(top, [])
        if not has_hidden_part(rest):
            found.append(file)
            if "/" in rest:
                nested.setdefault(top, set()).update(_parents(path))
    below = {top: (found, tuple(sorted(nested[top])) if top in nested else ()) for top, found in files.items()}
    return below, loose


def _parents(path: str) -> list[str]:
    """Directories between the top one and the file; an object store does not list them by themselves."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(2, len(parts))]


def _check_formats_read(listing: Listing, base_formats: Mapping[str, str]) -> None:
    for path in base_format_files(listing):
        if path.partition("/")[0] not in base_formats:
            raise ConfigurationError(
                f"base_formats lacks {path}",
                "which decides whether the base is a compaction's",
                "read every file that base_format_files names and pass its data format",
            )


def _data_format(path: str, base_formats: Mapping[str, str]) -> str | None:
    data_format = base_formats.get(path)
    if data_format is not None and data_format not in DATA_FORMATS:
        raise UnknownNameError(
            f"{path}/{METADATA_FILE}", f"names the data format {data_format!r}", "find out what wrote the base"
        )
    return data_format


def _refuse_nested_tables(others: Iterable[str], listing: Listing) -> None:
    tops = set(others)
    names = [*listing.directories, *(file.path.rpartition("/")[0] for file in listing.files)]
    for name in names:
        top, _, rest = name.partition("/")
        if top in tops and not has_hidden_part(rest) and any(map(is_acid_prefixed, rest.split("/"))):
            raise UnsupportedTableError(
                f"directory {name}",
                f"is an ACID directory inside {top}, which is none",
                "name a partition of a partitioned table; otherwise move the directory out of the table",
            )
