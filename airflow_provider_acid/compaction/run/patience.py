"""A store that does not answer once may do so at the next try."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from airflow_provider_acid.exceptions import StorageError

log = logging.getLogger(__name__)


class Patience:
    """How long what a store did not answer may be asked again; belongs to one thread.

    :param seconds: from the first time that there was no answer on.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since_monotonic: dict[str, float] = {}

    @contextmanager
    def about(self, what: str, *, is_over: bool = False) -> Iterator[None]:
        """A block that ends without an error where the store did not answer in it, and is to be asked again.

        :param what: is asked; each thing has its own time.
        :param is_over: whether it cannot be asked again.
        :raises StorageError: it was asked long enough, or another try ends the same way.
        """
        try:
            yield
        except StorageError as error:
            first = self._since_monotonic.setdefault(what, time.monotonic())
            if is_over or error.is_permanent or time.monotonic() - first >= self._seconds:
                raise
            log.warning("Tried again: %s", error)
        else:
            self._since_monotonic.pop(what, None)
