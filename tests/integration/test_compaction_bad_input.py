"""What must not be compacted ends in a clear error, and not one byte of the table changes."""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.plan import CompactionPlan, CompactionResult
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.worker import ActiveCompaction
from airflow_provider_acid.filesystem import storage_for
from airflow_provider_acid.hooks.metastore import MetastoreEndpoint
from airflow_provider_acid.metastore.transport import MetastoreAddress
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.operators.compaction import open_connected_worker
from tests.harness.hive_tables import register
from tests.harness.plain_job import run_plainly
from tests.integration.compaction_site import AcidTable, Site, due, fingerprint
from tests.unit.metastore.test_connection import old_server
from tests.unit.spark_jobs.acid_files import insert

__all__ = ["old_server"]

UNPUBLISHED = {OutcomeState.REFUSED: CompactionState.REFUSED, OutcomeState.FAILED: CompactionState.FAILED}


def inserts(site: Site, name: str = "t", count: int = 3, **options: Any) -> AcidTable:
    table = site.table(name, **options)
    for value in range(count):
        table.insert(value, value)
    return table


def assert_clear(site: Site, outcome: Outcome, text: str, *, has_row: bool = True) -> None:
    """The message names object, reason and remedy, and the queue's row carries it where there is one."""
    assert outcome.state in UNPUBLISHED, outcome
    assert text in outcome.message
    assert re.fullmatch(r".+: .+\. Remedy: .+\.", outcome.message), outcome.message
    if has_row:
        row = site.row(outcome.request_id)
        assert (row.state, row.error_message) == (UNPUBLISHED[outcome.state], outcome.message)
    assert site.admin.transactions().open <= site.open_txns, "its own transaction is over"


# Kinds of tables


@pytest.mark.parametrize(
    ("options", "text", "has_row"),
    [
        ({"properties": {"EXTERNAL": "TRUE", "transactional": "false"}}, "is an external table", False),
        ({"properties": {"transactional_properties": "insert_only"}}, "is an insert-only table", True),
        ({"properties": {"hive.repl.first.inc.pending": "true"}}, "waits for its first incremental replication", True),
        ({"properties": {"NO_CLEANUP": "True"}}, "no_cleanup", True),
    ],
)
def test_a_kind_of_table_that_is_not_compacted_is_refused_by_name(
    site: Site, options: dict[str, Any], text: str, has_row: bool
) -> None:
    table = site.table(**options)
    for value in range(2):
        table.write_file(f"delta_{value:07d}_{value:07d}_0000", [insert(value, 0, value)])
    before = table.fingerprint()
    outcome = site.compact(table.entity())
    assert_clear(site, outcome, text, has_row=has_row)
    assert outcome.message.startswith((f"table {table.entity()}: ", f"{table.entity()}: "))
    assert table.fingerprint() == before


def test_a_table_that_is_not_acid_is_refused_without_a_request(site: Site) -> None:
    plain = site.table("plain", properties={"transactional": "false", "transactional_properties": ""})
    outcome = site.compact(plain.entity())
    assert_clear(site, outcome, "is an external table", has_row=False)
    assert site.rows(plain.entity()) == []


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"repl.source.for": "policy"}, "its database is a replication source (repl.source.for)"),
        ({"hive.repl.first.inc.pending": "true"}, "waits for its first incremental replication"),
    ],
)
def test_a_database_in_replication_is_refused(site: Site, properties: dict[str, str], text: str) -> None:
    table = inserts(site)
    site.set_database_properties(properties)
    before = table.fingerprint()
    assert_clear(site, site.compact(table.entity()), text)
    assert table.fingerprint() == before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a_conv", "is an original file from before the table became transactional"),
        ("a_load", "has no ACID columns (LOAD DATA left it so)"),
        ("io_orc", "is an insert-only table"),
        ("io_abort", "is an insert-only table"),
    ],
)
def test_a_hive_table_of_a_later_release_is_refused_by_name(site: Site, name: str, text: str) -> None:
    table = register(site.server, name, "3.1.3", site.database)
    site.settings = CompactionSettings(rewrite_single_delta=True)
    before = fingerprint(table.location)
    outcome = site.compact(Entity(site.database, name))
    assert outcome.state is OutcomeState.REFUSED
    assert_clear(site, outcome, text)
    assert fingerprint(table.location) == before


# Names that lead nowhere


@pytest.mark.parametrize(
    ("name", "partition", "text"),
    [
        ("parts", "p=unknown", "the metastore does not know partition p=unknown"),
        ("parts", None, "is partitioned, but no partition is named"),
        ("plain", "p=a", "has no partitions"),
        ("nowhere", None, "nowhere"),
    ],
)
def test_an_entity_that_does_not_exist_is_named_and_nothing_is_requested(
    site: Site, name: str, partition: str | None, text: str
) -> None:
    site.table("parts", partitions=["p=a"])
    site.table("plain")
    entity = Entity(site.database, name, partition)
    outcome = site.compact(entity)
    assert_clear(site, outcome, text, has_row=False)
    assert site.rows(entity) == []


# Files


def cut(table: AcidTable) -> None:
    file = table.folder() / "delta_0000002_0000002_0000" / "bucket_00000"
    file.write_bytes(file.read_bytes()[:-7])


def spoil(table: AcidTable) -> None:
    file = table.folder() / "delta_0000002_0000002_0000" / "bucket_00000"
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] + b"\xff" * (len(content) - len(content) // 2))


def spoil_delete(table: AcidTable) -> None:
    table.write().delete((1, 0)).commit()
    (table.folder() / "delete_delta_0000004_0000004_0000" / "bucket_00000").write_bytes(b"ORC and no more of it")


def link(table: AcidTable) -> None:
    (table.folder() / "delta_0000004_0000004_0000").symlink_to(table.folder() / "delta_0000003_0000003_0000")


def add(name: str, content: bytes = b"1") -> Callable[[AcidTable], None]:
    def write(table: AcidTable) -> None:
        file = table.folder() / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)

    return write


def twin(table: AcidTable) -> None:
    folder = table.folder() / "delta_0000002_0000002_0000"
    shutil.copy(folder / "bucket_00000", folder / "bucket_00000_1")


def above_4095(table: AcidTable) -> None:
    folder = table.folder() / "delta_0000002_0000002_0000"
    (folder / "bucket_00000").rename(folder / "bucket_04096")


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (cut, "delta_0000002_0000002_0000/bucket_00000"),
        (spoil, "delta_0000002_0000002_0000/bucket_00000"),
        (spoil_delete, "delete_delta_0000004_0000004_0000/bucket_00000"),
        (link, "delta_0000004_0000004_0000: is a symbolic link inside a table"),
        (above_4095, "has a bucket number above 4095"),
        (twin, "has the same bucket number as"),
        (add("delta_0000002_0000002_0000/part-0001"), "follows none of the name rules"),
        (add("delta_0000002_0000002_0000/000000_0"), "has no ACID columns"),
        (add("delta_0000002_0000002_0000/bucket_00000_flush_length", b"\0" * 8), "belongs to a streaming writer"),
        (add("000000_0"), "is an original file from before the table became transactional"),
        (add("delta_abc/bucket_00000"), "directory delta_abc"),
        (add("base_0000002/_metadata_acid", b"not JSON"), "base_0000002/_metadata_acid"),
        (add("delta_0000002_0000002_0000/nested/bucket_00000"), "is a directory inside an ACID directory"),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", ""),
)
def test_files_that_cannot_be_merged_exactly_are_named(
    site: Site, damage: Callable[[AcidTable], None], text: str
) -> None:
    table = inserts(site)
    damage(table)
    before = table.fingerprint()
    outcome = site.compact(table.entity())
    # A link is met when the partition is listed for the first time, before anything is requested.
    assert_clear(site, outcome, text, has_row=damage is not link)
    assert table.fingerprint() == before


def test_a_delete_file_of_a_bucket_without_rows_is_no_obstacle(site: Site) -> None:
    """Where every row of a bucket is gone by an earlier compaction, a writer may still leave an empty delete file."""
    table = site.table(bucket_columns=("v",), buckets=2)
    table.insert(1, 2)
    write = table.write().delete((1, 0))
    table.write_file(f"delete_delta_{write.id:07d}_{write.id:07d}_0000", [], bucket=1)
    write.commit()
    outcome = site.compact(table.entity())
    assert outcome.state is OutcomeState.COMPACTED, outcome
    assert table.values() == [2]


# While the job runs


def refused_at_the_end(site: Site, meanwhile: Callable[[AcidTable, ActiveCompaction], None], text: str) -> None:
    """Something happens after the merge; its own bytes are part of the table that must stay."""
    table = inserts(site)
    worker = site.worker()
    active = site.begin(table.entity())
    result = run_plainly(active.plan)
    meanwhile(table, active)
    staging = f"{active.plan.staging}"
    before = {path: sum for path, sum in table.fingerprint().items() if not path.startswith(staging)}

    outcome = worker.finish(active, result)

    assert outcome.state is OutcomeState.FAILED
    assert text in outcome.message
    assert ". Remedy: " in outcome.message
    assert table.fingerprint() == before
    row = site.row(active.claim.id)
    assert row.state is CompactionState.FAILED
    assert site.admin.transactions().open <= site.open_txns


def test_a_name_that_is_published_already_is_never_replaced(site: Site) -> None:
    def publish_the_same_name(table: AcidTable, active: ActiveCompaction) -> None:
        (table.folder() / active.plan.target).mkdir()
        (table.folder() / active.plan.target / "bucket_00000").write_bytes(b"somebody else's")

    refused_at_the_end(site, publish_the_same_name, "exists already")


def test_an_aborted_transaction_publishes_nothing(site: Site) -> None:
    refused_at_the_end(site, lambda table, active: site.admin.abort(active.transaction.txn_id), "transaction")


def test_a_claim_that_somebody_else_ended_publishes_nothing(site: Site) -> None:
    def fail_the_row(table: AcidTable, active: ActiveCompaction) -> None:
        site.client.mark_failed(active.claim.info, "worker timed out")

    refused_at_the_end(site, fail_the_row, "the row is now failed")


def remove_file(table: AcidTable, active: ActiveCompaction) -> None:
    (table.folder() / "delta_0000002_0000002_0000" / "bucket_00000").unlink()


def remove_directory(table: AcidTable, active: ActiveCompaction) -> None:
    shutil.rmtree(table.folder() / "delta_0000002_0000002_0000")


def grow_file(table: AcidTable, active: ActiveCompaction) -> None:
    with (table.folder() / "delta_0000002_0000002_0000" / "bucket_00000").open("ab") as file:
        file.write(b"more")


def add_file(table: AcidTable, active: ActiveCompaction) -> None:
    table.write_file("delta_0000002_0000002_0000", [insert(2, 7, 7)], bucket=1)


@pytest.mark.parametrize("change", [remove_file, remove_directory, grow_file, add_file])
def test_inputs_that_changed_while_they_were_merged_publish_nothing(
    site: Site, change: Callable[[AcidTable, ActiveCompaction], None]
) -> None:
    refused_at_the_end(site, change, "its input files changed while they were merged: delta_0000002_0000002_0000/")


# A job that lies


def of_wrong_size(plan: CompactionPlan) -> CompactionResult:
    result = run_plainly(plan)
    return replace(result, files=(replace(result.files[0], size_bytes=result.files[0].size_bytes + 1),))


def of_wrong_counts(plan: CompactionPlan) -> CompactionResult:
    result = run_plainly(plan)
    return replace(result, files=(replace(result.files[0], rows_in=result.files[0].rows_in + 1),))


def with_a_file_missing(plan: CompactionPlan) -> CompactionResult:
    result = run_plainly(plan)
    storage_for(plan.location).delete([f"{plan.staging}/output/bucket_00000"])
    return result


def with_a_file_too_many(plan: CompactionPlan) -> CompactionResult:
    result = run_plainly(plan)
    storage_for(plan.location).write_new(f"{plan.staging}/output/bucket_00007", b"x")
    return result


def with_a_directory_too_many(plan: CompactionPlan) -> CompactionResult:
    result = run_plainly(plan)
    storage_for(plan.location).make_directory(f"{plan.staging}/output/bucket_00007")
    return result


def with_a_bucket_passed_over_in_silence(plan: CompactionPlan) -> CompactionResult:
    result = with_a_file_missing(plan)
    return replace(result, files=())


def with_a_bucket_said_to_be_empty(plan: CompactionPlan) -> CompactionResult:
    result = with_a_file_missing(plan)
    return replace(result, files=(replace(result.files[0], rows_out=0, size_bytes=0),))


def without_markers(plan: CompactionPlan) -> CompactionResult:
    result = run_plainly(plan)
    storage_for(plan.location).delete([f"{plan.staging}/output/_metadata_acid"])
    return result


def that_wrote_nothing(plan: CompactionPlan) -> CompactionResult:
    return CompactionResult(plan.attempt, plan.entity, None, (), 0.0)


def of_another_attempt(plan: CompactionPlan) -> CompactionResult:
    return replace(run_plainly(plan), attempt="another")


@pytest.mark.parametrize(
    "job",
    [
        of_wrong_size,
        of_wrong_counts,
        with_a_file_missing,
        with_a_file_too_many,
        with_a_directory_too_many,
        with_a_bucket_passed_over_in_silence,
        with_a_bucket_said_to_be_empty,
        without_markers,
        that_wrote_nothing,
        of_another_attempt,
    ],
)
def test_a_result_that_lies_is_not_published(site: Site, job: Callable[[CompactionPlan], CompactionResult]) -> None:
    table = inserts(site)
    before = table.fingerprint()
    outcome = site.compact(table.entity(), job=job)
    assert outcome.state is OutcomeState.FAILED
    assert_clear(site, outcome, "Remedy: ")
    assert table.fingerprint() == before
    assert site.compact(table.entity()).state is OutcomeState.COMPACTED, "the next attempt finds nothing in its way"


# Metastores that cannot be used


def begin_at(address: MetastoreAddress, entity: Entity) -> Outcome:
    endpoint = MetastoreEndpoint((address,), 2.0, None)
    with open_connected_worker(endpoint, CompactionSettings(), "task") as worker:
        outcome = worker.begin(due(entity))
    assert isinstance(outcome, Outcome)
    return outcome


def test_a_metastore_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    outcome = begin_at(MetastoreAddress("127.0.0.1", port), Entity("db", "t"))
    assert outcome.state is OutcomeState.FAILED
    assert f"127.0.0.1:{port}" in outcome.message
    assert "Remedy: " in outcome.message


def test_a_metastore_of_another_version_is_named_before_anything_is_requested(old_server: MetastoreAddress) -> None:
    outcome = begin_at(old_server, Entity("db", "t"))
    assert outcome.state is OutcomeState.FAILED
    assert outcome.message == (
        "metastore: its version 3.1.3 lacks the calls by which somebody outside of Hive can be a worker. "
        "Remedy: connect to a Hive 4 metastore."
    )


def test_a_table_whose_folder_is_gone_is_named(site: Site, tmp_path: Path) -> None:
    table = inserts(site)
    table.location.rename(tmp_path / "moved")
    before = fingerprint(tmp_path)
    assert_clear(site, site.compact(table.entity()), f"{table.location}: ", has_row=False)
    assert fingerprint(tmp_path) == before
