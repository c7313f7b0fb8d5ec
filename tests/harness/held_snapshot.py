"""A reader that began early and takes its time: it has a transaction and takes no locks."""

from __future__ import annotations

import threading

from tests.harness.table_state import TableState
from tests.harness.thrift_admin import ThriftAdmin

HEARTBEAT_SECONDS = 1.0


class HeldSnapshot:
    """An open transaction with the snapshot of its beginning, kept alive in a thread of its own.

    :ivar snapshot: what it may see.
    :ivar directories: what there was for it to read.
    """

    def __init__(self, state: TableState) -> None:
        self._admin = ThriftAdmin(state.server.host, state.server.port).__enter__()
        (self._transaction,) = self._admin.open_transactions()
        self.snapshot = state.snapshot()
        self.directories = state.visible_directories()
        self._ended = threading.Event()
        self._heart = threading.Thread(target=self._beat, daemon=True)
        self._heart.start()

    def close(self) -> None:
        """Ends the reader; once is enough."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._heart.join()
        try:
            self._admin.commit(self._transaction)
        finally:
            self._admin.__exit__(None, None, None)

    def _beat(self) -> None:
        while not self._ended.wait(HEARTBEAT_SECONDS):
            self._admin.heartbeat(self._transaction)
