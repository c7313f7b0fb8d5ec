"""Names of the compaction pools by which our own requests are found again and claimed by nobody else."""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass

from airflow_provider_acid.exceptions import ConfigurationError

PREFIX = "airflow-acid"

_OWNER_LENGTH = 12
_IDENTITY = rf"([0-9a-f]{{{_OWNER_LENGTH}}}):([0-9a-z]+)"
_NAME = re.compile(rf"{PREFIX}:{_IDENTITY}")
_WORKER = re.compile(rf"airflow(?:@.*)?-acid:{_IDENTITY}(?:@.*)?")
_HOST_LENGTH = 64  # of 128 characters of a worker's id


@dataclass(frozen=True)
class RequestPool:
    """The pool of one request.

    :param owner: 12 hex digits that stay the same for all attempts of one task; see :func:`owner_of`.
    :param token: lower-case letters and digits; unique per attempt.
    """

    owner: str
    token: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(str(self)):
            raise ConfigurationError(
                f"pool {self}", "is not a name this package makes", "take the owner from owner_of()"
            )

    @classmethod
    def new(cls, owner: str) -> RequestPool:
        """A pool with a token that was never used before."""
        return cls(owner, new_token())

    @classmethod
    def parse(cls, name: str | None) -> RequestPool | None:
        """The pool of that name; None where it is not one of ours."""
        match = _NAME.fullmatch(name or "")
        return cls(match[1], match[2]) if match else None

    @classmethod
    def of_worker(cls, name: str | None) -> RequestPool | None:
        """The pool in a worker's id, or in the host of an attempt's transaction; None where it is not one of ours."""
        match = _WORKER.fullmatch(name or "")
        return cls(match[1], match[2]) if match else None

    def worker_id(self, host: str) -> str:
        """The id of whoever serves it.

        Hive's SHOW COMPACTIONS parts an id at its last hyphen into a host, ``airflow@HOST``, and a worker,
        ``acid:OWNER:TOKEN``. It does not begin with the host: a restarting metastore takes back the claims of workers
        that are named like its own.
        """
        return f"airflow@{host[:_HOST_LENGTH]}-acid:{self.owner}:{self.token}"

    def __str__(self) -> str:
        return f"{PREFIX}:{self.owner}:{self.token}"


def new_token() -> str:
    """A token that was never used before."""
    return uuid.uuid4().hex[:16]


def owner_of(*identity: str) -> str:
    """A short stable name for who makes requests, e.g. DAG, task, run and map index."""
    return hashlib.sha256("\0".join(identity).encode()).hexdigest()[:_OWNER_LENGTH]
