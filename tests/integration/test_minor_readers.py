"""Readers that list and read without a pause while a table is compacted and cleaned, round after round."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from airflow_provider_acid.compaction.clean.cleaner import Cleaner
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.metastore.values import LockState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.acid_reader import Snapshot, read_table
from tests.harness.compaction_chain import wait_until
from tests.harness.thrift_admin import ThriftAdmin
from tests.integration.compaction_site import AcidTable, Site, StepRecorder, due

ROUNDS = 2
PAUSE_SECONDS = 0.2
"""Between two looks at a lock; asked without a pause, the metastore's Derby database locks itself up."""

MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR


class Reader:
    """Reads a table again and again in a thread of its own, as a query engine does, and keeps what was wrong.

    :param as_trino: ignore the transactions of compactions.
    :param locks: take a SHARED_READ lock before listing, and wait for it.
    """

    def __init__(self, table: AcidTable, *, as_trino: bool, locks: bool) -> None:
        self._table = table
        self._as_trino, self._locks = as_trino, locks
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._expected = table.values()
        self.reads = 0
        self.waits = 0
        self.wrong: list[list[int]] = []
        self.errors: list[BaseException] = []

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read meanwhile, at least once before and once after."""
        self._thread.start()
        try:
            self.wait_for(lambda: self.reads)
            yield
            self.wait_for(lambda: self.reads)
        finally:
            self._stopped.set()
            self._thread.join()
        assert self.errors == []

    def wait_for(self, count: Callable[[], int]) -> None:
        """Wait until a count has grown by two: then something began after this call and is over."""
        before = count()
        wait_until(lambda: count() > before + 1 or bool(self.errors))

    def _run(self) -> None:
        server = self._table.site.server
        addresses = [MetastoreAddress(server.host, server.port)]
        try:
            with ThriftAdmin(server.host, server.port) as admin, AcidMetastoreClient(addresses) as client:
                while not self._stopped.is_set():
                    self._query(admin, client)
        except BaseException as error:  # noqa: BLE001 - the test's thread looks at it
            self.errors.append(error)

    def _query(self, admin: ThriftAdmin, client: AcidMetastoreClient) -> None:
        (txn,) = admin.open_transactions()
        try:
            if self._locks:
                answer = client.lock_shared_read(txn, self._table.entity())
                while answer.state is LockState.WAITING:
                    self.waits += 1
                    self._stopped.wait(PAUSE_SECONDS)
                    answer = client.check_lock(answer.lock_id, txn)
            if self._read(admin, client, txn) != self._expected:
                self.wrong.append(self._read(admin, client, txn))
            self.reads += 1
        finally:
            admin.commit(txn)

    def _read(self, admin: ThriftAdmin, client: AcidMetastoreClient, txn: int) -> list[int]:
        txns = client.open_transactions()
        write_ids = admin.write_ids(self._table.site.database, self._table.name)
        snapshot = Snapshot(
            write_ids.high_water_mark,
            write_ids.open,
            write_ids.aborted,
            {*txns.open, *txns.aborted},
            transaction_high_water_mark=txns.high_water_mark,
            check_visibility=not self._as_trino,
        )
        return sorted(int(str(row.values["v"])) for row in read_table(self._table.location, {"v": "bigint"}, snapshot))


def write_a_round(table: AcidTable, number: int, *, deletes: bool) -> None:
    """Two writes, or three, of which each of the last two deletes a row of the one before."""
    first = table.insert(10 * number, 10 * number + 1)
    second = table.write().insert(10 * number + 2, 10 * number + 3)
    if deletes:
        second.delete((first.id, 0))
    second.commit()
    if deletes:
        table.write().delete((second.id, 1)).commit()


def compact_and_clean(site: Site, table: AcidTable, type: CompactionType, at: Callable[[Step], None]) -> None:
    outcome = site.compact(due(table.entity(), type=type), on_step=StepRecorder(at))
    assert outcome.state is OutcomeState.COMPACTED, outcome
    assert outcome.targets[0].startswith("base_" if type is MAJOR else "delta_")

    def is_cleaned() -> bool:
        # The pause between its two looks counts here: transactions are being opened all the time.
        [cleaning] = Cleaner(site.client, site.queue, site.settings).clean([table.entity()])
        return cleaning.state is CleaningState.CLEANED

    wait_until(is_cleaned)


@pytest.mark.parametrize(
    ("type", "deletes"), [(MINOR, True), (MINOR, False), (MAJOR, True)], ids=["two kinds", "one kind", "major"]
)
def test_a_reader_of_trinos_kind_sees_the_same_rows_at_all_times(
    site: Site, type: CompactionType, deletes: bool
) -> None:
    table = site.table()
    for number in range(ROUNDS):
        write_a_round(table, number, deletes=deletes)
        reader = Reader(table, as_trino=True, locks=True)

        def at(step: Step, reader: Reader = reader) -> None:
            if step is Step.FIRST_PUBLISHED:
                reader.wait_for(lambda: reader.waits)

        with reader.reading():
            compact_and_clean(site, table, type, at)
        assert reader.wrong == []
        assert (reader.waits > 0) >= (deletes and type is MINOR), "the lock was met"


def test_without_a_lock_only_a_reader_of_hives_kind_does(site: Site) -> None:
    """Why the option readers_honour_visibility says what it says."""
    site.settings = replace(site.settings, readers_honour_visibility=True)
    table = site.table()
    wrong = 0
    for number in range(ROUNDS):
        write_a_round(table, number, deletes=True)
        hive, trino = (Reader(table, as_trino=as_trino, locks=False) for as_trino in (False, True))

        def at(step: Step, hive: Reader = hive, trino: Reader = trino) -> None:
            if step is Step.FIRST_PUBLISHED:
                hive.wait_for(lambda: hive.reads)
                trino.wait_for(lambda: trino.reads)

        with hive.reading(), trino.reading():
            compact_and_clean(site, table, MINOR, at)
        assert hive.wrong == []
        wrong += len(trino.wrong)
    assert wrong > 0
