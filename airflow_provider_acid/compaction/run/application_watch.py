"""Looks for what a Spark application says of itself in the run directory, while somebody waits for its end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from airflow_provider_acid.acid.json_fields import decoded, optional_text
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.plan import exchange

log = logging.getLogger(__name__)

POLL_SECONDS = 2.0


@contextmanager
def watch_application(
    storages: Storages, run_location: str, found: Callable[[str], None], poll_seconds: float = POLL_SECONDS
) -> Iterator[None]:
    """Call ``found`` once with the address of the application's user interface, from another thread, if there is one.

    Whatever goes wrong is logged: the application is worth more than a link to it.

    :param storages: opens the run directory anew, because the batch's thread uses its own.
    """
    ended = threading.Event()

    def watch() -> None:
        try:
            storage = storages.open(run_location)
            while not storage.exists(exchange.APPLICATION_FILE):
                if ended.wait(poll_seconds):
                    return
            about = decoded(storage.read(exchange.APPLICATION_FILE), exchange.APPLICATION_FILE)
            url = optional_text(about, "ui_url")
            if url is not None:
                found(url)
        except Exception as error:  # noqa: BLE001 - of a storage, of Airflow's API; the thread has nobody to raise it to
            log.warning("The Spark application's user interface is not known: %s: %s", type(error).__name__, error)

    thread = threading.Thread(target=watch, name="acid-application-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(POLL_SECONDS)
