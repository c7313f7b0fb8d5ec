"""What a directory must be for plans and results to lie in it."""

from __future__ import annotations

from airflow_provider_acid.exceptions import ConfigurationError, RefusedError

PRIVATE_MODE = 0o700
OTHERS_MAY_WRITE = 0o022


def check_is_private(place: str, kind: str, owner: str, me: str, mode: int) -> None:
    """Check what was seen of a directory.

    :param kind: ``directory``, or what it is else.
    :param owner: whom it belongs to, called in the same way as ``me``.
    :param mode: permission bits.
    :raises RefusedError: others may put files into it, or exchange it.
    """
    if kind != "directory":
        reason = f"is a {kind}, and no directory"
    elif owner != me:
        reason = f"belongs to {owner}, and not to {me}"
    elif mode & OTHERS_MAY_WRITE:
        reason = f"may be written to by others (its mode is {mode:o})"
    else:
        return
    raise RefusedError(
        place,
        f"is where compactions exchange plans and results, and {reason}",
        "remove it, let Airflow and the Spark driver be the same user, or name another place by run_directory",
    )


def no_home(place: str, reason: str) -> ConfigurationError:
    """The error where there is no place for a user's own files."""
    return ConfigurationError(
        place,
        f"cannot take the directory in which compactions exchange plans and results ({reason})",
        "make it for Airflow's user, or name another place by run_directory",
    )
