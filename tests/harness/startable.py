"""Servers and engines that tests start before a block and stop after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType

from typing_extensions import Self


class Startable(ABC):
    """As a context manager it is started on entry and stopped on exit."""

    @abstractmethod
    def start(self) -> None:
        """Starts it and waits until it can be used; nothing is left running where that fails."""

    @abstractmethod
    def stop(self) -> None:
        """Ends it; nothing happens where it does not run."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
