"""Checks of the compaction queue and of what an evaluation found: what waits, fails, or cannot be done."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from airflow_provider_acid.compaction.evaluate.queue_figures import cleanable_since_ms
from airflow_provider_acid.compaction.housekeep.stuck import repeated_failures, unserved_requests
from airflow_provider_acid.compaction.quantities import human_seconds
from airflow_provider_acid.doctor.check import Check, Seen, note, problem, warning
from airflow_provider_acid.doctor.site import Site
from airflow_provider_acid.metastore.values import CompactionState

LONG_CLEANING_SECONDS = 6 * 3_600.0
LONG_WAITING_SECONDS = 3_600.0


def _waiting_requests(site: Site) -> Iterator[Seen]:
    for stuck in unserved_requests(site.rows, site.now_ms, LONG_WAITING_SECONDS):
        if stuck.age_seconds is not None:
            yield warning(
                f"{stuck.message} for {stuck.subject} waits for {human_seconds(stuck.age_seconds)} to be claimed",
                "nobody serves it, and Hive takes no second request for the same partition",
                "let the installed DAG run on its table, or Hive's workers of that pool",
            )


def _silent_claims(site: Site) -> Iterator[Seen]:
    for row in site.rows:
        if row.state is not CompactionState.WORKING or row.start_ms is None:
            continue
        seconds = site.age_seconds(row.start_ms)
        if seconds >= site.settings.worker_timeout_seconds:
            yield problem(
                f"{row} is claimed by {row.worker_id} for {human_seconds(seconds)}",
                "its worker is dead, and nothing else compacts the partition meanwhile",
                "run acid_housekeeping; where Hive's own worker claimed it, hive.compactor.worker.timeout ends it",
            )


def _waiting_cleanings(site: Site) -> Iterator[Seen]:
    keep_seconds = site.settings.keep_replaced_seconds
    waiting = [
        (site.age_seconds(cleanable_since_ms(row, keep_seconds)), row) for row in site.rows if row.waits_to_be_cleaned
    ]
    long = [found for found in waiting if found[0] >= LONG_CLEANING_SECONDS]
    if long:
        seconds, row = max(long, key=itemgetter(0))
        yield warning(
            f"{len(long)} compactions wait to be cleaned, {row} for {human_seconds(seconds)}",
            "what they replaced still takes space, and readers list it",
            "look at 'oldest transaction'; then let acid_compaction or acid_housekeeping run",
        )


def _failures(site: Site) -> Iterator[Seen]:
    for stuck in repeated_failures(site.rows_by_entity):
        yield problem(
            f"{stuck.subject} failed {stuck.message}",
            "neither Hive nor the sensor asks for it again",
            "remove the cause, then compact it by acid_compact_table with type major or minor",
        )


def _left_requests(site: Site) -> Iterator[Seen]:
    for left in site.evaluation.foreign:
        yield note(
            f"request {left.id} for {left.entity} ({left.type}) is left to others",
            "it waits for whoever can do it",
            left.reason,
        )


def _refused(site: Site) -> Iterator[Seen]:
    for reason in site.evaluation.refused:
        told, _, remedy = reason.partition(" Remedy: ")
        yield problem(told.rstrip("."), "it is not compacted, and its readers get slower", remedy.rstrip("."))


def _patterns(site: Site) -> Iterator[Seen]:
    why = "what was meant is perhaps not compacted, or is although it should not be"
    for pattern in site.evaluation.unmatched:
        yield warning(pattern.clause, why, "correct it, or take it out")


QUEUE_CHECKS = (
    Check("waiting requests", "no request waits for an hour", _waiting_requests),
    Check("silent claims", "every claim is younger than its worker's time-out", _silent_claims),
    Check("waiting cleanings", "no compaction waits to be cleaned for six hours", _waiting_cleanings),
    Check("repeated failures", "no partition failed twice in a row", _failures),
    Check("requests left to others", "there are none", _left_requests),
    Check("tables that cannot be compacted", "every partition could be looked at", _refused),
    Check("table patterns", "each matches a table", _patterns),
)
