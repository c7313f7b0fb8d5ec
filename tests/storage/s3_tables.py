"""Hive's tables on S3, readers that look after every request, and processes that die or sleep between two copies."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from botocore.httpsession import URLLib3Session

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.filesystem import Storage, Storages
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.values import LockState
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.storages.s3.options import S3Credentials, S3Options
from airflow_provider_acid.storages.s3.storage import S3Storage
from tests.harness.compaction_chain import Chain
from tests.harness.hive_tables import check_place, register, set_location
from tests.harness.metastore_server import MetastoreServer
from tests.harness.s3_server import S3Server
from tests.harness.thrift_admin import ThriftAdmin
from tests.storage.remote_tables import RemotePlace, RemoteTable

SEVERAL_FILES = ("4.0.1", "acid_buck")
"""A fixture of which each result has several data files, which appear under an EXCLUSIVE lock."""

_NUMBERS = count()
_CHANGES = ("PUT", "POST", "DELETE")


@dataclass(frozen=True)
class KeyedStorages(Storages):
    """Storages that take the tests' own key along into other processes of theirs.

    :param after_copies: after so many copies of a publication, or of what is taken back, the process signals itself.
    :param how: SIGKILL to die there, SIGSTOP to fall asleep.
    """

    access_key: str = ""
    secret_key: str = ""
    after_copies: int | None = None
    how: signal.Signals = signal.SIGKILL

    def open(self, location: str) -> Storage:
        """See :meth:`Storages.open`."""
        copies = count(1)

        def on_copy(key: str) -> None:
            if next(copies) == self.after_copies:
                os.kill(os.getpid(), self.how)

        return S3Storage(location, self.of(S3Options), S3Credentials(self.access_key, self.secret_key), on_copy)


@dataclass(frozen=True)
class ListeningStorages(Storages):
    """The storages of others, with somebody who hears of each copy of a publication."""

    storages: Storages = Storages()
    on_copy: Callable[[str], None] = print

    def open(self, location: str) -> Storage:
        """See :meth:`Storages.open`."""
        assert isinstance(self.storages, KeyedStorages)
        key = S3Credentials(self.storages.access_key, self.storages.secret_key)
        return S3Storage(location, self.storages.of(S3Options), key, self.on_copy)


def place_on(server: S3Server) -> RemotePlace:
    """A bucket."""
    options = S3Options(endpoint=server.endpoint, region=server.region, timeout_seconds=20)
    storages = KeyedStorages((options,), access_key=server.key.access_key, secret_key=server.key.secret_key)
    return RemotePlace(storages, f"s3a://{server.bucket()}/warehouse")


def table_on(
    server: MetastoreServer, place: RemotePlace, folder: Path, fixture: tuple[str, str] = ("4.0.1", "acid_merge")
) -> RemoteTable:
    """A fixture in a database of its own.

    The tests' metastores have no S3A: the table is made in the warehouse, and gets its location afterwards.
    """
    version, name = fixture
    table = register(server, name, version, f"s3_{next(_NUMBERS)}")
    moved = replace(table, uri=f"{place.uri}/{table.database}.db/{name}")
    place.put(table.location, moved.uri)
    folder.mkdir(parents=True, exist_ok=True)
    set_location(server, table.uri, moved.uri)
    with ThriftAdmin(server.host, server.port) as admin:
        check_place(admin, table.database, name, place.uri)
    return RemoteTable(server, place, moved, folder)


@contextmanager
def after_each_change(look: Callable[[str], None]) -> Iterator[None]:
    """Calls a function after each request of boto3 that changes something; no other is under way meanwhile.

    :param look: told what was done.
    """
    lock = threading.RLock()
    send = URLLib3Session.send

    def one_by_one(session: URLLib3Session, request: Any) -> Any:
        with lock:
            answer = send(session, request)
            if request.method in _CHANGES:
                look(f"{request.method} {request.url.partition('?')[0]}")
            return answer

    with patch.object(URLLib3Session, "send", one_by_one):
        yield


class Readers:
    """One reader of Hive's kind, which looks at transactions, and one of Trino's, which does not but takes locks."""

    def __init__(self, table: RemoteTable) -> None:
        self._table = table
        self.wrong: list[str] = []
        self.looks = 0
        self.kept_away = 0

    def look(self, done: str) -> None:
        """Reads the table; what is not as expected is remembered."""
        self.looks += 1
        self._compare(f"Hive after {done}", check_visibility=True)
        if self._is_locked():
            self.kept_away += 1
        else:
            self._compare(f"Trino after {done}", check_visibility=False)

    def _compare(self, who: str, *, check_visibility: bool) -> None:
        try:
            if self._table.read(check_visibility=check_visibility) != self._table.expected:
                self.wrong.append(who)
        except Exception as error:  # noqa: BLE001 - told by the test
            self.wrong.append(f"{who}: {error}")

    def _is_locked(self) -> bool:
        address = MetastoreAddress(self._table.server.host, self._table.server.port)
        with AcidMetastoreClient([address], timeout_seconds=20) as client:
            locks = client.show_locks(Entity(self._table.table.database, self._table.table.name))
        return any(lock.type == "EXCLUSIVE" and lock.state is LockState.ACQUIRED for lock in locks)


def chain_of(table: RemoteTable, entity: Entity, type: CompactionType = CompactionType.MAJOR) -> Chain:
    """Compaction and cleaning of a partition on the place's storages."""
    settings = CompactionSettings(storages=table.place.storages, rewrite_single_delta=True)
    return Chain.on(table.server, entity, settings=settings, type=type)


def end_it(table: RemoteTable, chain: Chain, ends: set[OutcomeState] | None = None) -> None:
    """The next try, and a cleaning; nothing but the result is left."""
    ends = ends or {OutcomeState.COMPACTED, OutcomeState.SKIPPED, OutcomeState.NOTHING_TO_MERGE}
    assert chain.next_try().compact().outcome.state in ends
    assert table.read() == table.read(check_visibility=False) == table.expected
    assert {cleaning.state for cleaning in chain.clean()} <= {CleaningState.CLEANED}
    names = table.names(chain.entity)
    assert [name for name in names if name.startswith(("_", "."))] == []
    if chain.type is CompactionType.MAJOR:
        assert [name[:5] for name in names] == ["base_"]
    assert table.read() == table.read(check_visibility=False) == table.expected
