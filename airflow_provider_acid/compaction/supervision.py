"""One item among many: whatever it raises becomes its own error, and the others go on."""

from __future__ import annotations

import logging
from types import TracebackType

from airflow_provider_acid.exceptions import AcidError, UnexpectedError

log = logging.getLogger(__name__)

MOST_CHARACTERS = 1000
"""Of what an unforeseen error says of itself; the log has all."""


class Supervised:
    """A block in which every error is one of this package's family; those of the family pass as they are.

    :param subject: what the block is about.
    :param kind: which error is made of one that nobody foresaw.
    """

    def __init__(self, subject: object, kind: type[AcidError] = UnexpectedError) -> None:
        self._subject = subject
        self._kind = kind

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, AcidError) or not isinstance(error, Exception):
            return
        subject = str(self._subject)
        log.error("%s: an error that nobody foresaw", subject, exc_info=error)
        raise self._kind(
            subject,
            f"an error that nobody foresaw ({type(error).__name__}: {error})"[:MOST_CHARACTERS],
            "report it with the traceback in the log; other partitions are not concerned",
        ) from error
