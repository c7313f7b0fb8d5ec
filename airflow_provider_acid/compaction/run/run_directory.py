"""The operator's side of a run directory: plans and signs of life in, results and progress out.

It lies on the first table's store, so that any worker and any deploy mode sees it (:mod:`.run_place`). Its files are
named in :mod:`~airflow_provider_acid.plan.exchange`, and sealed where something depends on them.
"""

from __future__ import annotations

import json
import logging
import math
import re
import time

from airflow_provider_acid.acid.json_fields import decoded, integer, text
from airflow_provider_acid.acid.listing import FileEntry
from airflow_provider_acid.acid.sealing import HEAD_BYTES, RunKey
from airflow_provider_acid.compaction.run.patience import Patience
from airflow_provider_acid.compaction.run.run_place import RunPlace
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.exceptions import AcidError, NameTakenError, UnsupportedTableError
from airflow_provider_acid.filesystem import Storages, join
from airflow_provider_acid.plan import exchange
from airflow_provider_acid.plan.plan import FORMAT_VERSION, CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.storages.small_files import EXCHANGE_FILE_BYTES

log = logging.getLogger(__name__)

IDLE_TIMEOUT_SECONDS = 600.0

BEATS_IN_IDLE_TIMEOUT = 100
"""What takes long may begin one interval after the last sign of life; that must be next to nothing of the time-out."""

_APPLICATION_ID = re.compile(r"[A-Za-z0-9_.-]{1,200}")


class RunDirectory:
    """The operator's side of one run.

    A store that does not answer signs of life and looks is asked again at the next ones, for as long as the application
    does without an answer, too.

    :param storages: opens the run's directory.
    :param place: where it is made, for nobody but this user.
    :param key: seals what is said here; a new one for each run, whose name the directory gets.
    :param idle_timeout_seconds: the application ends itself after this long without a sign of life.
    :ivar application_id: Spark's, as the application says it; None until a :meth:`poll` has found it.
    :raises RefusedError: others may write to the place, or it is somebody else's.
    :raises ConfigurationError: it cannot be made.
    """

    def __init__(
        self,
        storages: Storages,
        place: RunPlace,
        key: RunKey,
        idle_timeout_seconds: float = IDLE_TIMEOUT_SECONDS,
    ) -> None:
        self.storages = storages
        self.key = key
        self.idle_timeout_seconds = idle_timeout_seconds
        self._parent = storages.open(place.root)
        self._path = f"{place.path}/{key.run}"
        place.make(self._parent)
        self._parent.make_private(self._path)
        self.application_id: str | None = None
        self.location = join(place.root, self._path)
        self._storage = storages.open(self.location)
        self._seen: set[str] = set()
        self._files: dict[int, list[str]] = {}
        """Of each item that is not over, as far as they are known."""
        self._over: list[str] = []
        self._patience = Patience(idle_timeout_seconds)
        self._beats = 0
        self._last_beat_monotonic = -math.inf
        self._is_over = False
        batch = {"format_version": FORMAT_VERSION, "idle_timeout_seconds": idle_timeout_seconds}
        self._put(exchange.BATCH_FILE, json.dumps(batch).encode())

    def put_plan(self, index: int, plan: CompactionPlan) -> None:
        """Hand item ``index`` to the application.

        :raises UnsupportedTableError: the partition has more files than a plan may name.
        """
        document = plan.to_json().encode()
        if len(document) > EXCHANGE_FILE_BYTES - HEAD_BYTES:
            raise UnsupportedTableError(
                str(plan.entity),
                f"its plan would have {len(document)} bytes, and {EXCHANGE_FILE_BYTES} are read at most",
                "compact it by Hive, or merge its files in parts, by minors",
            )
        name = exchange.item_file(index, exchange.PLAN)
        self._seen.add(name)
        self._files.setdefault(index, []).append(name)
        self._put(name, document)

    def forget(self, index: int) -> None:
        """Have the files of item ``index``, which is over, removed by the next :meth:`poll`."""
        self._over += self._files.pop(index, [])

    def put_end(self) -> None:
        """Tell the application that nobody waits for anything more, if it was not told."""
        if self._is_over:
            return
        try:
            self._put(exchange.END_FILE, b"")
        except NameTakenError:
            log.warning("%s is not the operator's, and is replaced", join(self.location, exchange.END_FILE))
            self._storage.delete([exchange.END_FILE])
            self._put(exchange.END_FILE, b"")
        self._is_over = True

    def beat_if_due(self, most_seconds: float) -> None:
        """Leave a sign of life unless the last is younger than that; each is two calls to the storage.

        :raises StorageError: there was no answer for the application's idle time-out, or another try ends the same way.
        """
        # Before it is written, so that it is never older than this says.
        now = time.monotonic()
        if now - self._last_beat_monotonic >= min(most_seconds, self.idle_timeout_seconds / BEATS_IN_IDLE_TIMEOUT):
            with self._patience.about("a sign of life"):
                self.beat()
                self._last_beat_monotonic = now

    def beat(self) -> None:
        """Leave a sign of life and remove the one before the last."""
        self._beats += 1
        self._storage.write_new(exchange.alive_file(self._beats), b"")
        self._storage.delete_files([exchange.alive_file(self._beats - 2)])

    def poll(self, *, is_last: bool = False) -> tuple[dict[int, CompactionResult | AcidError], dict[int, int]]:
        """Results that came since the last call, or why they cannot be read, and the bytes done per item.

        :param is_last: whether there is no other call that may be answered where this one is not.
        :raises StorageError: the directory cannot be looked at, and that is not to be tried again.
        """
        results: dict[int, CompactionResult | AcidError] = {}
        bytes_done: dict[int, int] = {}
        files: tuple[FileEntry, ...] = ()
        with self._patience.about("a look", is_over=is_last):
            self._remove_over()
            files = self._storage.list().files
        for file in files:
            if file.path in self._seen:
                continue
            if file.path == exchange.APPLICATION_FILE:
                self._seen.add(file.path)
                self.application_id = self._application_id(file.path)
            named = exchange.parse_item_file(file.path)
            if named is None:
                continue
            index, kind = named
            if kind == exchange.RESULT:
                try:
                    with self._patience.about(file.path, is_over=is_last):
                        results[index] = self._result(file.path)
                except AcidError as error:
                    results[index] = error
                if index not in results:
                    continue
            elif kind.startswith("progress."):
                bytes_done[index] = max(self._bytes_done(file.path), bytes_done.get(index, 0))
            self._seen.add(file.path)
            self._files.setdefault(index, []).append(file.path)
        return results, bytes_done

    def _remove_over(self) -> None:
        if self._over:
            self._storage.delete_files(self._over)
            self._seen.difference_update(self._over)
            self._over = []

    def _result(self, path: str) -> CompactionResult:
        uri = join(self.location, path)
        with Supervised(uri):
            document = self._storage.read(path, EXCHANGE_FILE_BYTES)
            return CompactionResult.from_json(self.key.opened(uri, path, document))

    def _put(self, name: str, content: bytes) -> None:
        self._storage.write_new(name, self.key.sealed(name, content))

    def _bytes_done(self, path: str) -> int:
        """What a report says; 0 where it cannot be understood, for nothing depends on it."""
        try:
            return integer(decoded(self._storage.read(path), path), "bytes_done")
        except AcidError as error:
            log.warning("A report of progress is passed over: %s", error)
            return 0

    def _application_id(self, path: str) -> str | None:
        """What the application says; None where it cannot be understood, for nothing depends on it."""
        try:
            id = text(decoded(self._storage.read(path), path), "id")
        except AcidError as error:
            log.warning("The application's id is not known: %s", error)
            return None
        return id if _APPLICATION_ID.fullmatch(id) else None

    def remove(self) -> None:
        """Remove the run's files. The directory of all runs stays: another run may just begin in it."""
        self._parent.delete([self._path])
