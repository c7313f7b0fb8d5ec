"""What operator and Spark application say to each other carries a seal that nobody else can make.

It is HMAC-SHA256 by a key that the operator makes for each run, over the run's name, the file's name and the content:
nothing that was written for another run, for another item or as another kind of file is taken.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass, field

from airflow_provider_acid.exceptions import UnauthenticatedError

KEY_BYTES = 32
_END_OF_SEAL = b"\n"
HEAD_BYTES = 2 * hashlib.sha256().digest_size + len(_END_OF_SEAL)
"""What the seal takes before the content."""


@dataclass(frozen=True)
class RunKey:
    """What seals the files of one run.

    :param run: name of the run directory.
    :param secret: known to the operator and to the driver of its application, and to nobody else.
    """

    run: str
    secret: bytes = field(repr=False)

    @classmethod
    def new(cls, run: str) -> RunKey:
        """A key that was never used."""
        return cls(run, secrets.token_bytes(KEY_BYTES))

    def seal_of(self, name: str, content: bytes = b"") -> str:
        """The seal of a file, in hexadecimal digits.

        :param name: in the run directory.
        """
        seal = hmac.new(self.secret, json.dumps([self.run, name]).encode() + b"\n", hashlib.sha256)
        seal.update(content)
        return seal.hexdigest()

    def sealed(self, name: str, content: bytes) -> bytes:
        """The content, behind its seal."""
        return self._head(name, content) + content

    def opened(self, place: str, name: str, document: bytes) -> bytes:
        """The content of what :meth:`sealed` made; nothing of it is looked at before.

        :param place: the file's URI, for the error.
        :raises UnauthenticatedError: it has not the seal of this file in this run.
        """
        content = content_of(document)
        if not hmac.compare_digest(document[:HEAD_BYTES], self._head(name, content)):
            raise UnauthenticatedError(
                place,
                "has not the seal of its run: somebody changed it, or wrote it in another's place",
                "find out who may write there, and run the compaction again; this partition was not changed",
            )
        return content

    def _head(self, name: str, content: bytes) -> bytes:
        return self.seal_of(name, content).encode() + _END_OF_SEAL


def content_of(document: bytes) -> bytes:
    """What follows the seal, whoever wrote it."""
    return document[HEAD_BYTES:]
