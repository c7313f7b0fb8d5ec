"""What a run takes, and what its log says of it: an aligned table, worst first, with a limited number of lines."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.compaction.evaluate import decision_report
from airflow_provider_acid.compaction.evaluate.budget import RunBudget
from airflow_provider_acid.compaction.evaluate.decision_report import RunShare
from airflow_provider_acid.compaction.evaluate.demand import Demand
from airflow_provider_acid.compaction.evaluate.initiator import Evaluated, Evaluation
from airflow_provider_acid.compaction.evaluate.read_cost import OPENING_BYTES
from airflow_provider_acid.compaction.outcomes import DuePartition
from airflow_provider_acid.compaction.requests_of_others import NOT_SERVED, LeftRequest
from airflow_provider_acid.compaction.text_table import LINES, text_table
from airflow_provider_acid.plan.plan import CompactionType
from airflow_provider_acid.plan.thresholds import CompactionDecision
from tests.unit.compaction.evaluated_tables import EvaluatedTables, FakeStorages, deltas, entity

MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR
MIB = 2**20


def seen(number: int, type: CompactionType | None, deltas: int, input_mib: int = 0) -> Evaluated:
    decision = CompactionDecision(type, f"{deltas} deltas", deltas, 2, 10 * MIB, 100 * MIB, 0.1)
    return Evaluated(entity("t", number), decision, deltas * OPENING_BYTES, input_mib * MIB)


def evaluation() -> Evaluation:
    evaluated = (seen(1, MINOR, 14, 10), seen(2, None, 3), seen(3, MAJOR, 120, 2000))
    due = (
        DuePartition(entity("u"), MAJOR, "request 7 (major) made by somebody else", 7),
        *(
            DuePartition(each.entity, each.decision.type, each.decision.reason)
            for each in evaluated[::-2]
            if each.decision.type
        ),
    )
    foreign = (LeftRequest(8, entity("v"), "minor", NOT_SERVED),)
    return Evaluation(due, evaluated, ("table d.w: no",), foreign)


def test_the_log_shows_what_is_due_and_what_is_left_worst_first() -> None:
    share = RunShare.within(RunBudget(2), evaluation())
    assert list(share.lines()) == [
        (
            logging.INFO,
            "3 partitions looked at: 3 due, 1 skipped, 1 request of others not served",
        ),
        (logging.INFO, "1 of those due are left to the next run (budget)"),
        (
            logging.WARNING,
            "request 8 for d.v (minor) was made by somebody else and is not served; "
            "set serve_foreign_requests to have it carried out",
        ),
        (logging.INFO, "due: 3"),
        (logging.INFO, "  partition    type   deltas  delete deltas  ratio     bytes  read cost  reason"),
        (
            logging.INFO,
            "  d.u          major       -              -      -         -          -  "
            "request 7 (major) made by somebody else",
        ),
        (logging.INFO, "  d.t/p=00003  major     120              2   0.10   2.0 GiB  480.0 MiB  120 deltas"),
        (
            logging.INFO,
            "  d.t/p=00001  minor      14              2   0.10  10.0 MiB   56.0 MiB  "
            "left to the next run (budget): 14 deltas",
        ),
        (logging.INFO, "skipped: table d.w: no"),
    ]


def test_a_dry_run_shows_what_is_not_due_as_well() -> None:
    lines = [line for _, line in RunShare.within(RunBudget(9), evaluation()).lines(all_partitions=True)]
    assert "partitions: 4" in lines
    assert [line.split()[:2] for line in lines if line.startswith("  d.")] == [
        ["d.u", "major"],
        ["d.t/p=00003", "major"],
        ["d.t/p=00001", "minor"],
        ["d.t/p=00002", "-"],
    ]


def test_where_nothing_is_due_there_is_no_table_but_in_a_dry_run() -> None:
    share = RunShare.within(RunBudget(9), Evaluation())
    assert len(list(share.lines())) == 1
    assert [line for _, line in share.lines(all_partitions=True)][1:] == ["partitions: nothing"]


def test_a_great_sweep_does_not_fill_the_log() -> None:
    due = tuple(DuePartition(entity("t", number), MAJOR, "12 deltas") for number in range(300))
    foreign = tuple(LeftRequest(id, entity("v"), "minor", NOT_SERVED) for id in range(300))
    skipped = tuple(f"table d.t{number}: no" for number in range(300))
    lines = [line for _, line in RunShare.within(RunBudget(200), Evaluation(due, (), skipped, foreign)).lines()]
    assert len(lines) == 2 + (LINES + 1) + (LINES + 3) + (LINES + 1)
    assert lines.count("... and 250 more") == 3


@pytest.mark.parametrize(("gib", "taken"), [(None, 3), (2, 3), (1.9, 2), (1, 2)])
def test_requests_of_others_count_no_bytes(gib: float | None, taken: int) -> None:
    share = RunShare.within(RunBudget(9, None if gib is None else int(gib * 2**30)), evaluation())
    # u is a request, so p=3 with its 2,000 MiB is the first that counts, and is taken though that is more than 1 GiB.
    assert len(share.taken) == taken
    assert (*share.taken, *share.left) == evaluation().due


@pytest.mark.parametrize(
    ("partitions", "batch_mib", "most", "batches"),
    [
        (2, 10_000, 9, [[None, "p=00003"], ["p=00001"]]),
        (9, 10_000, 9, [[None, "p=00003", "p=00001"]]),
        (9, 2010, 9, [[None, "p=00003", "p=00001"]]),
        (9, 2009, 9, [[None, "p=00003"], ["p=00001"]]),
        (9, 1, 9, [[None], ["p=00003"], ["p=00001"]]),
        (9, 1, 2, [[None, "p=00003", "p=00001"]]),
        (9, 1, 1, [[None, "p=00003", "p=00001"]]),
        (1, 1, 1, [[None], ["p=00003"], ["p=00001"]]),
    ],
    ids=[
        "two in one",
        "all in one",
        "just as much as one may read",
        "a byte more",
        "each is too large for another beside it",
        "in two lists at most",
        "in one list",
        "their number alone is too large",
    ],
)
def test_what_is_taken_comes_in_batches_of_so_many_or_so_much(
    monkeypatch: pytest.MonkeyPatch, partitions: int, batch_mib: int, most: int, batches: list[list[str | None]]
) -> None:
    monkeypatch.setattr(decision_report, "BATCH_BYTES", batch_mib * MIB)
    share = RunShare.within(RunBudget(3), evaluation())
    assert [[item["partition"] for item in batch] for batch in share.batches(partitions, most)] == batches


def test_a_batch_is_of_one_queue_of_the_cluster() -> None:
    found = evaluation()
    queues = ("nightly", None, "nightly")
    due = tuple(replace(item, job_queue=queue) for item, queue in zip(found.due, queues, strict=True))
    share = RunShare.within(RunBudget(3), replace(found, due=due))
    assert [[item.get("job_queue") for item in batch] for batch in share.batches(9, 1)] == [["nightly"] * 2, [None]]


def test_the_worst_for_readers_comes_first_and_its_input_is_what_is_merged() -> None:
    sizes = {"t/p=00000": 3, "t/p=00001": 9, "t/p=00002": 6, "u": 5}
    storages = FakeStorages(listing=lambda location: deltas(sizes[location.removeprefix("file:/warehouse/d.db/")]))
    found = EvaluatedTables({"t": 3, "u": None}, storages).evaluate()
    assert [str(item.entity) for item in found.due] == ["d.t/p=00001", "d.t/p=00002", "d.u", "d.t/p=00000"]
    figures = {str(each.entity): (each.input_bytes, each.read_cost_bytes) for each in found.evaluated}
    assert figures["d.t/p=00001"] == (900, 9 * OPENING_BYTES)


@pytest.mark.parametrize(("type", "input_bytes"), [(None, 300), (MINOR, 300), (MAJOR, 100_300)])
def test_a_minor_reads_deltas_alone_and_a_major_the_base_too(type: CompactionType | None, input_bytes: int) -> None:
    names = ("base_0000001", *(f"delta_{number:07d}_{number:07d}_0000" for number in (2, 3, 4)))
    files = tuple(FileEntry(f"{name}/bucket_00000", 100_000 if name[0] == "b" else 100) for name in names)
    site = EvaluatedTables({"t": None}, FakeStorages(listing=lambda location: Listing(files, names)))
    (found,) = site.evaluate("d.t", demand=Demand(type=type)).evaluated
    assert (found.decision.type, found.input_bytes) == (type or MINOR, input_bytes)


def test_a_table_is_aligned_and_says_how_many_rows_it_leaves_out() -> None:
    rows = [("a", "1", "x"), ("bbb", "22", "y")]
    assert text_table("t", ("name", "n", "what"), rows, right=[1]) == [
        "t: 2",
        "  name   n  what",
        "  a      1  x",
        "  bbb   22  y",
    ]
    assert text_table("t", ("name", "n"), []) == ["t: nothing"]
    many = text_table("t", ("n", "m"), [("1", "1")] * (LINES + 7))
    assert (len(many), many[-1]) == (LINES + 3, "... and 7 more")


def test_what_is_only_to_be_cleaned_counts_no_bytes() -> None:
    """As after INSERT OVERWRITE, every night: nothing is merged, and the old base goes to the cleaner."""
    names = ("base_0000001", "base_0000002")
    listing = Listing(tuple(FileEntry(f"{name}/bucket_00000", 9 * MIB) for name in names), names)
    found = EvaluatedTables({"t": 5}, FakeStorages(listing=lambda location: listing)).evaluate()
    assert {due.reason for due in found.due} == {"major: an obsolete base waits to be cleaned"}
    assert {each.input_bytes for each in found.evaluated} == {0}
    assert len(RunShare.within(RunBudget(9, MIB), found).taken) == 5
