"""What tests of the cleaning on Hive 3.1.3 share."""

from __future__ import annotations

import time
from collections.abc import Callable

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import Cleaning
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from tests.integration.compaction_site import AcidTable, Site

PATIENCE_SECONDS = 30


def inserts(site: Site, count: int = 3) -> AcidTable:
    table = site.table()
    for value in range(count):
        table.insert(value)
    return table


def compact(site: Site, what: Entity | DuePartition) -> Outcome:
    compacted = site.compact(what)
    assert compacted.state is OutcomeState.COMPACTED, compacted
    return compacted


def visible(table: AcidTable, partition: str | None = None) -> list[str]:
    return [name for name in table.directories(partition) if not name.startswith("_")]


def clean(site: Site, table: AcidTable, partition: str | None = None) -> Cleaning:
    (cleaning,) = site.clean(table.entity(partition))
    return cleaning


def comes_true(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return False


def stored_state(site: Site, id: int | None) -> str:
    """The row's letter in the database; ``gone`` where it has left the queue."""
    found = site.server.server_database.query(f"SELECT cq_state FROM COMPACTION_QUEUE WHERE cq_id = {id}")
    return str(found[0][0]) if found else "gone"


def recorded_aborts(site: Site, table: str) -> set[int]:
    """Write ids of the table whose abort Hive has on record; others count as committed."""
    found = site.server.server_database.query(
        "SELECT tc_writeid FROM TXN_COMPONENTS JOIN TXNS ON tc_txnid = txn_id "
        f"WHERE txn_state = 'a' AND tc_database = '{site.database}' AND tc_table = '{table}'"
    )
    return {int(str(write_id)) for (write_id,) in found}


def let_hives_housekeeping_run(site: Site) -> None:
    """Wait until Hive's Initiator has forgotten an aborted transaction that wrote nothing, and so all such."""
    (txn,) = site.admin.open_transactions()
    site.admin.abort(txn)
    assert comes_true(lambda: txn not in site.admin.transactions().aborted)
