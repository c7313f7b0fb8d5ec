"""Keeping a transaction alive from a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from airflow_provider_acid.exceptions import ConfigurationError, MetastoreError, OwnershipLostError

RETRY_SECONDS = 5.0
"""Pause after a beat that failed, where the interval is longer."""

STOP_SECONDS = 5.0
"""How long to wait for a beat that was cut off; one that is still connecting sends nothing any more."""

log = logging.getLogger(__name__)


class HeartbeatClient(Protocol):
    """What a heartbeat needs of a metastore client; see AcidMetastoreClient."""

    def heartbeat(self, txn_id: int) -> None:
        """Keep the transaction alive."""

    def interrupt(self) -> None:
        """End a running call, from another thread."""

    def close(self) -> None:
        """Close the connection."""


class Heartbeat:
    """Beats for one transaction until stopped, or until the transaction is lost.

    A beat that fails is tried again until the transaction's time-out has passed since the last good one was sent:
    from then on the metastore may have aborted the transaction. An answer that the transaction is aborted or unknown
    ends it at once (Hive's ``CompactionHeartbeatService``).

    :param client: used by the beating thread alone, which also closes it.
    :param interval_seconds: pause between beats.
    :param timeout_seconds: the transaction's time-out.
    :param last_good: time of ``clock`` at which the transaction was known to be alive, taken before asking for it.
    """

    def __init__(
        self,
        client: HeartbeatClient,
        txn_id: int,
        *,
        interval_seconds: float,
        timeout_seconds: float,
        last_good: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 0 < interval_seconds < timeout_seconds:
            raise ConfigurationError(
                f"heartbeat of transaction {txn_id}",
                f"an interval of {interval_seconds} s does not fit a time-out of {timeout_seconds} s",
                "choose an interval of at most half the time-out",
            )
        self.txn_id = txn_id
        self._client = client
        self._interval_seconds = interval_seconds
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._last_good = last_good
        self._failure: MetastoreError | None = None
        self._lost: OwnershipLostError | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"heartbeat-txn-{txn_id}", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """End beating; a running beat is cut off and none follows."""
        self._stopping.set()
        self._client.interrupt()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def check(self) -> None:
        """Do nothing while the transaction is alive.

        :raises OwnershipLostError: it is lost, or no beat got through for as long as its time-out.
        """
        if self._lost is not None:
            raise self._lost
        silent_seconds = self._clock() - self._last_good
        if silent_seconds >= self._timeout_seconds:
            raise OwnershipLostError(
                f"transaction {self.txn_id}",
                f"no heartbeat got through for {silent_seconds:.0f} s, its time-out is {self._timeout_seconds:.0f} s"
                + (f" ({self._failure})" if self._failure else ""),
                "nothing was published; start the attempt again",
            ) from self._failure

    def beat(self) -> bool:
        """Beat once; whether beating goes on."""
        sent = self._clock()
        try:
            self._client.heartbeat(self.txn_id)
        except OwnershipLostError as error:
            self._lost = error
            return False
        except MetastoreError as error:
            if self._stopping.is_set():
                return False
            self._failure = error
            self._client.close()
            log.warning("Heartbeat of transaction %s failed, trying again: %s", self.txn_id, error)
            return True
        self._last_good = sent
        self._failure = None
        return True

    def _run(self) -> None:
        try:
            while not self._stopping.wait(self._pause_seconds()) and self.beat():
                pass
        finally:
            self._client.close()

    def _pause_seconds(self) -> float:
        return min(self._interval_seconds, RETRY_SECONDS) if self._failure else self._interval_seconds
