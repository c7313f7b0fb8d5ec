"""Whoever reads on Hive 4 keeps what his snapshot needs, whatever was compacted since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.acid_reader import Snapshot, read_table
from tests.harness.current_rows import snapshot_now
from tests.integration.compaction_site import ON_BOTH_METASTORES, AcidTable, Site, StepRecorder, TxnType, due

MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR

PARTITION = "p=a"
ROWS = [2, 3, 9]


@dataclass(frozen=True)
class Query:
    """A transaction, and what it may see, as it was when it began."""

    table: AcidTable
    txn: int
    snapshot: Snapshot

    def rows(self) -> list[int]:
        found = read_table(self.table.location, {"v": "bigint"}, self.snapshot, partition_keys=["p"])
        return sorted(int(str(row.values["v"])) for row in found)


def begin_query(table: AcidTable, txn: int) -> Query:
    site = table.site
    snapshot = snapshot_now(site.admin, site.database, table.name)
    return Query(table, txn, replace(snapshot, transaction_high_water_mark=txn))


def without_a_lock(table: AcidTable) -> int:
    return table.site.open_txn(TxnType.DEFAULT)


def with_a_lock(table: AcidTable) -> int:
    return table.site.reader(table, PARTITION)


def written_table(site: Site) -> AcidTable:
    """Four write ids, one of them with a delete."""
    table = site.table(partitions=[PARTITION, "p=b"])
    for value in (1, 2, 3):
        table.insert(value, partition=PARTITION)
    table.write(PARTITION).insert(9).delete((1, 0)).commit()
    return table


def compact(table: AcidTable, type: CompactionType, at: Callable[[Step], None] = lambda step: None) -> str:
    """The first directory of the result."""
    outcome = table.site.compact(due(table.entity(PARTITION), type=type), on_step=StepRecorder(at))
    assert outcome.state is OutcomeState.COMPACTED, outcome
    return outcome.targets[0]


@pytest.mark.parametrize(
    ("reads", "beside_readers"),
    [(without_a_lock, False), (with_a_lock, True)],
    ids=["without a lock", "with a lock beside which is deleted"],
)
def test_a_reader_that_began_while_a_later_compaction_ran_keeps_the_older_result(
    site: Site, reads: Callable[[AcidTable], int], beside_readers: bool
) -> None:
    if beside_readers:
        site.clean_beside_readers()
    table = written_table(site)
    entity = table.entity(PARTITION)
    older = site.open_txn(TxnType.DEFAULT)
    minor = compact(table, MINOR)
    before = table.visible(PARTITION)
    # Without another write the server takes no further request.
    table.insert(4, partition="p=b")
    queries: list[Query] = []

    def begin(step: Step) -> None:
        if step is Step.STAGED:
            queries.append(begin_query(table, reads(table)))

    major = compact(table, MAJOR, begin)
    (query,) = queries
    site.end(older, site.admin.commit)

    first, second = site.clean(entity)
    assert query.rows() == [2, 3, 4, 9]
    assert (first.state, second.state) == (CleaningState.WAITING, CleaningState.WAITING)
    assert first.message.startswith("waits for a newer compaction to be cleaned: it replaced ")
    assert second.message.startswith(f"waits for transaction {query.txn} ")
    assert minor in before
    assert table.visible(PARTITION) == [major, *before]

    site.end(query.txn, site.admin.commit)
    assert [cleaning.state for cleaning in site.clean(entity)] == [CleaningState.CLEANED, CleaningState.CLEANED]
    assert table.visible(PARTITION) == [major]
    assert table.values() == [2, 3, 4, 9]
    assert [row.state for row in site.rows(entity)] == [CompactionState.SUCCEEDED, CompactionState.SUCCEEDED]


def test_a_compaction_that_opened_before_the_commit_of_the_one_before_is_not_counted_either(site: Site) -> None:
    """Its transaction is lower than the highest one that there was at that commit, yet it commits later."""
    table = written_table(site)
    entity = table.entity(PARTITION)
    older = site.open_txn(TxnType.DEFAULT)
    begun = []

    def begin_another(step: Step) -> None:
        if step is Step.PUBLISHED:
            begun.append(site.client.open_compaction_txn())

    minor = compact(table, MINOR, begin_another)
    (txn,) = begun
    query = begin_query(table, without_a_lock(table))
    base = table.write_file(f"base_0000004_v{txn:07d}", [], PARTITION).parent.name
    site.client.commit(txn)
    site.end(older, site.admin.commit)
    (cleaning,) = site.clean(entity)
    assert cleaning.message.startswith("waits for a newer compaction to be cleaned: ")
    assert query.rows() == ROWS
    assert {base, minor, f"delete_{minor}"} < set(table.visible(PARTITION))


def test_a_read_only_transaction_is_waited_for(site: Site) -> None:
    table = written_table(site)
    query = begin_query(table, site.open_txn(TxnType.READ_ONLY))
    before = table.visible(PARTITION)
    base = compact(table, MAJOR)

    (cleaning,) = site.clean(table.entity(PARTITION))
    assert cleaning.state is CleaningState.WAITING
    assert cleaning.message.startswith(f"waits for transaction {query.txn} ")
    assert query.rows() == ROWS
    assert table.visible(PARTITION) == [base, *before]

    site.end(query.txn, site.admin.commit)
    (cleaning,) = site.clean(table.entity(PARTITION))
    assert cleaning.state is CleaningState.CLEANED
    assert table.visible(PARTITION) == [base]


@ON_BOTH_METASTORES
def test_open_transactions_are_those_of_every_type(site: Site) -> None:
    opened = [site.open_txn(type) for type in TxnType]
    found = site.client.open_transactions()
    assert set(opened) <= set(found.open)
    assert found.min_open == min(found.open)
    site.end(opened[-1], site.admin.abort)
    assert opened[-1] not in site.client.open_transactions().open


def test_a_snapshot_sees_the_same_beside_a_read_only_transaction(site: Site) -> None:
    table = written_table(site)
    site.open_txn(TxnType.READ_ONLY)
    assert compact(table, MAJOR).startswith("base_0000004_v")
    assert table.values() == ROWS
