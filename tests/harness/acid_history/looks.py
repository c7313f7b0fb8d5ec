"""Between two looks of the product at metastore and partition other things happen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.filesystem import Storage, Storages
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.acid_history.steps import Meanwhile


class Looks:
    """Counts the looks of one step, and lets others act between them."""

    def __init__(self) -> None:
        self._meanwhile: Sequence[Meanwhile] = ()
        self._act: Callable[[Meanwhile], bool] = lambda meanwhile: False
        self._count = 0
        self.were_disturbed = False
        """Whether anything happened between the looks of the last step."""

    @contextmanager
    def disturbed_by(self, meanwhile: Sequence[Meanwhile], act: Callable[[Meanwhile], bool]) -> Iterator[None]:
        """Let others act during a step.

        :param act: what they do; whether it was anything.
        """
        self._meanwhile, self._act, self._count, self.were_disturbed = meanwhile, act, 0, False
        try:
            yield
        finally:
            self._meanwhile = ()

    @property
    def are_disturbed(self) -> bool:
        """Whether others may act between the looks of the step that is done now."""
        return bool(self._meanwhile)

    def pass_by(self) -> None:
        """Somebody is about to look."""
        look, self._count = self._count, self._count + 1
        for one in self._meanwhile:
            if one.look == look:
                self.were_disturbed |= self._act(one)


class WatchedStorage(LocalStorage):
    """A directory whose listings count as looks."""

    def __init__(self, location: str, looks: Looks) -> None:
        super().__init__(location)
        self.looks = looks

    def list(self, path: str = "", into: Callable[[str], bool] | None = None) -> Listing:
        """See :meth:`~airflow_provider_acid.filesystem.Storage.list`."""
        self.looks.pass_by()
        return super().list(path, into)


@dataclass(frozen=True)
class WatchedStorages(Storages):
    """Opens such directories."""

    looks: Looks = field(default_factory=Looks)

    def open(self, location: str) -> Storage:
        """See :meth:`~airflow_provider_acid.filesystem.Storages.open`."""
        return WatchedStorage(location, self.looks)
