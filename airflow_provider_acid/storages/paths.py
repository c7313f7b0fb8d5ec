"""What all storages have in common about URIs and paths."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from airflow_provider_acid.exceptions import StorageError


def split_location(location: str) -> SplitResult:
    """The parts of a location as the metastore keeps it.

    :raises StorageError: it is not a URI.
    """
    try:
        return urlsplit(location)
    except ValueError as error:
        raise StorageError(location, f"is not a URI ({error})", "check the location in the metastore") from error


def relative_parts(location: str, path: str) -> tuple[str, ...]:
    """The names that a path below a location goes through; none for the location itself.

    :raises StorageError: the path is absolute or goes up.
    """
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if path.startswith("/") or ".." in parts:
        raise StorageError(path, f"leaves the location {location}", "use paths below the location only")
    return parts
