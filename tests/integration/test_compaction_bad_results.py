"""What happens to the table or to the result in mid-job ends in a clear error, and nothing is published."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace

import pytest

from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionPlan, OutputKind
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.compaction_chain import outcome_of
from tests.harness.plain_job import run_plainly
from tests.integration.clear_refusals import assert_clear, inserts
from tests.integration.compaction_site import AcidTable, Site
from tests.unit.merge.acid_files import insert


def refused_at_the_end(
    site: Site,
    meanwhile: Callable[[AcidTable, ActiveCompaction], None],
    text: str,
    ended: CompactionState = CompactionState.FAILED,
) -> None:
    """Something happens after the merge; its own bytes are part of the table that must stay.

    :param ended: how the request ends: a partition that was lost to somebody else did not fail.
    """
    table = inserts(site)
    worker = site.worker()
    active = site.begin(table.entity())
    result = run_plainly(active.plan)
    meanwhile(table, active)
    staging = f"{active.plan.staging}"
    before = {path: sum for path, sum in table.fingerprint().items() if not path.startswith(staging)}

    outcome = outcome_of(worker.finish(active, result))

    assert outcome.state is OutcomeState.FAILED
    assert text in outcome.message
    assert ". Remedy: " in outcome.message
    assert table.fingerprint() == before
    row = site.row(active.claim.id)
    assert row.state is ended
    assert site.admin.transactions().open <= site.open_txns


def test_a_name_that_is_published_already_is_never_replaced(site: Site) -> None:
    def publish_the_same_name(table: AcidTable, active: ActiveCompaction) -> None:
        (table.folder() / active.plan.targets[0]).mkdir()
        (table.folder() / active.plan.targets[0] / "bucket_00000").write_bytes(b"somebody else's")

    refused_at_the_end(site, publish_the_same_name, "exists already")


def test_an_aborted_transaction_publishes_nothing(site: Site) -> None:
    def abort(table: AcidTable, active: ActiveCompaction) -> None:
        site.admin.abort(active.transaction.txn_id)

    refused_at_the_end(site, abort, "transaction", ended=CompactionState.REFUSED)


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
    changed = "its input files changed while they were merged: delta_0000002_0000002_0000/"
    refused_at_the_end(site, change, changed, ended=CompactionState.REFUSED)


# A job that lies


def of_wrong_size(plan: CompactionPlan) -> CompactionResult:
    result = run_plainly(plan)
    return replace(result, files=(replace(result.files[0], size_bytes=result.files[0].size_bytes + 1),))


def of_wrong_counts(plan: CompactionPlan) -> CompactionResult:
    result = run_plainly(plan)
    return replace(result, files=(replace(result.files[0], rows_in=result.files[0].rows_in + 1),))


def with_a_file_missing(plan: CompactionPlan) -> CompactionResult:
    result = run_plainly(plan)
    LocalStorage(plan.location).delete([f"{plan.staged(OutputKind.ROWS)}/bucket_00000"])
    return result


def with_a_file_too_many(plan: CompactionPlan) -> CompactionResult:
    result = run_plainly(plan)
    LocalStorage(plan.location).write_new(f"{plan.staged(OutputKind.ROWS)}/bucket_00007", b"x")
    return result


def with_a_directory_too_many(plan: CompactionPlan) -> CompactionResult:
    result = run_plainly(plan)
    LocalStorage(plan.location).make_directory(f"{plan.staged(OutputKind.ROWS)}/bucket_00007")
    return result


def with_a_bucket_passed_over_in_silence(plan: CompactionPlan) -> CompactionResult:
    result = with_a_file_missing(plan)
    return replace(result, files=())


def with_a_bucket_said_to_be_empty(plan: CompactionPlan) -> CompactionResult:
    result = with_a_file_missing(plan)
    return replace(result, files=(replace(result.files[0], rows_out=0, size_bytes=0),))


def without_markers(plan: CompactionPlan) -> CompactionResult:
    result = run_plainly(plan)
    LocalStorage(plan.location).delete([f"{plan.staged(OutputKind.ROWS)}/_metadata_acid"])
    return result


def that_wrote_nothing(plan: CompactionPlan) -> CompactionResult:
    return CompactionResult(plan.attempt, plan.digest, plan.entity, None, (), 0.0)


def of_another_attempt(plan: CompactionPlan) -> CompactionResult:
    return replace(run_plainly(plan), attempt="another")


def by_another_plan(plan: CompactionPlan) -> CompactionResult:
    return replace(run_plainly(plan), plan_digest=replace(plan, aborted_write_ids=(1,)).digest)


def with_rows_gone_for_no_reason(plan: CompactionPlan) -> CompactionResult:
    """As if their delete events were known, where the plan names no file of such."""
    result = with_a_file_missing(plan)
    file = result.files[0]
    gone = replace(file, name=None, size_bytes=0, stripes=0, rows_deleted=file.rows_in, rows_out=0)
    return replace(result, files=(gone,))


def with_rows_counted_below_nothing(plan: CompactionPlan) -> CompactionResult:
    result = run_plainly(plan)
    file = result.files[0]
    return replace(result, files=(replace(file, rows_in=file.rows_in - 1, rows_deleted=-1),))


@pytest.mark.parametrize(
    "job",
    [
        by_another_plan,
        with_rows_gone_for_no_reason,
        with_rows_counted_below_nothing,
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
