"""What a killed task still does: leave its work by an error, so that transactions and locks are given back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class UnwindsWhenKilled:
    """Comes before an operator that holds transactions and locks in its own thread while it works.

    Airflow calls ``on_kill`` in that thread and a few seconds later ends the process; Airflow 3 lets the work go on
    till then. Left alone, an EXCLUSIVE lock would keep readers waiting until the metastore finds its owner dead.
    """

    _at_work = False

    @contextmanager
    def _unwinding_when_killed(self) -> Iterator[None]:
        self._at_work = True
        try:
            yield
        finally:
            self._at_work = False

    def on_kill(self) -> None:
        """End the work where it stands; the next try finds what is left, as after any death.

        :raises SystemExit: it is at work. Airflow also calls this after a time-out, when there is none to end.
        """
        if self._at_work:
            raise SystemExit("The task was killed; what it held is given back")
