"""A cleaner that is killed while it waits for the EXCLUSIVE lock keeps nobody waiting behind it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pytest

from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from tests.harness.airflow_connections import connections_to
from tests.integration.compaction_site import Site


@pytest.fixture
def other_client(site: Site) -> Iterator[AcidMetastoreClient]:
    """For the thread that looks on."""
    with AcidMetastoreClient([MetastoreAddress(site.server.host, site.server.port)]) as client:
        yield client


def test_a_killed_cleaner_gives_transaction_and_lock_back(
    site: Site, other_client: AcidMetastoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in connections_to(site.server).items():
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("AIRFLOW__HIVE_ACID__CLEANER_LOCK_WAIT_SECONDS", "60")
    table = site.table("killed")
    for value in range(3):
        table.insert(value)
    assert site.compact(table.entity()).state is OutcomeState.COMPACTED
    before = table.fingerprint()
    reader = site.reader(table)
    operator = AcidCleanerOperator(
        task_id="clean", partitions=[{"database": site.database, "table": table.name}], deferrable=False
    )
    seen: list[int] = []

    def kill_it_while_it_waits() -> None:
        deadline = time.monotonic() + 40
        # The reader's lock, the cleaner's own shared one, and the EXCLUSIVE one that waits for the reader.
        while len(seen) < 3 and time.monotonic() < deadline:
            seen[:] = [lock.lock_id for lock in other_client.show_locks(table.entity())]
            time.sleep(0.1)
        signal.raise_signal(signal.SIGUSR1)

    before_handler = signal.signal(signal.SIGUSR1, lambda *_: operator.on_kill())
    started = time.monotonic()
    try:
        killer = threading.Thread(target=kill_it_while_it_waits)
        killer.start()
        with pytest.raises(SystemExit):
            operator.execute({})
        killer.join()
    finally:
        signal.signal(signal.SIGUSR1, before_handler)

    assert len(seen) == 3
    assert time.monotonic() - started < 50, "it did not wait for the lock to the end"
    assert [lock.txn_id for lock in site.client.show_locks(table.entity())] == [reader]
    assert site.client.open_transactions().open == (reader,)
    assert table.fingerprint() == before
    site.end(reader, site.admin.commit)
    (done,) = operator.execute({})
    assert done["state"] == "cleaned"
    assert table.values() == [0, 1, 2]
