"""Doing what nothing depends on: it never fails and never holds up what it is about."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)


def try_within(
    seconds: float, what: str, action: Callable[[], None], asked: str = "[hive_acid] health_location"
) -> bool:
    """Run an action in a thread and wait for it at most so long; whether it succeeded in that time.

    :param what: for the warning where it does not, e.g. ``the history of compactions is not written``.
    :param asked: who is waited for.
    """
    errors: list[Exception] = []

    def attempt() -> None:
        try:
            action()
        except Exception as error:  # whatever it is, the caller's work is done
            errors.append(error)

    thread = threading.Thread(target=attempt, name="health", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        log.warning("%s: %s does not answer within %g s", what, asked, seconds)
        return False
    if errors:
        log.warning("%s: %s", what, errors[0])
    return not errors
