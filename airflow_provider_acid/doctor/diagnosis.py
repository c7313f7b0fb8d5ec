"""All checks of one site, and what an evaluation would find there."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace

from airflow_provider_acid.compaction.evaluate.initiator import Evaluated, Evaluation, EvaluationObserver, Initiator
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.doctor.finding import Finding, Severity
from airflow_provider_acid.doctor.health_check import HEALTH_CHECKS
from airflow_provider_acid.doctor.queue_checks import QUEUE_CHECKS
from airflow_provider_acid.doctor.server_checks import QUICK_CHECKS, SERVER_CHECKS
from airflow_provider_acid.doctor.sightings import Sightings
from airflow_provider_acid.doctor.site import Endpoint, Site
from airflow_provider_acid.doctor.storage_check import STORAGE_CHECKS
from airflow_provider_acid.doctor.table_checks import TABLE_CHECKS
from airflow_provider_acid.doctor.transaction_checks import TRANSACTION_CHECKS
from airflow_provider_acid.exceptions import AcidError
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.queues import queue_of
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient

CHECKS = (*SERVER_CHECKS, *TRANSACTION_CHECKS, *QUEUE_CHECKS, *TABLE_CHECKS, *HEALTH_CHECKS)
ANSWERS, USABLE, TABLES = "metastore answers", "metastore can be worked with", "tables can be evaluated"
"""What comes before the others; they are asked only where these are well."""

QUICK_SECONDS = 30.0

_EVERY_TABLE = TableSelection.of(["*.*"])
_NO_FURTHER = "nothing can be compacted, and no other check can be made"


@dataclass(frozen=True)
class Diagnosis:
    """What was found.

    :param findings: in the order of the checks.
    :param evaluation: None where no table could be looked at.
    """

    findings: tuple[Finding, ...]
    evaluation: Evaluation | None

    @property
    def worst(self) -> Severity:
        """The worst of all findings."""
        return max((finding.severity for finding in self.findings), key=lambda severity: severity.rank)

    def due(self) -> Iterator[tuple[str, str, str, Evaluated | None]]:
        """Partition, type, reason and figures of what is due, worst for readers first."""
        found = self.evaluation or Evaluation()
        figures = {seen.entity: seen for seen in found.evaluated}
        for item in found.due:
            yield str(item.entity), item.type.value, item.reason, figures.get(item.entity)

    def to_json(self) -> Mapping[str, object]:
        """For programs."""
        found = self.evaluation or Evaluation()
        return {
            "worst": self.worst.value,
            "findings": [{**asdict(finding), "severity": finding.severity.value} for finding in self.findings],
            "partitions": len(found.evaluated),
            "skipped": list(found.skipped),
            "due": [
                {
                    "partition": partition,
                    "type": kind,
                    "reason": reason,
                    "deltas": None if seen is None else seen.decision.delta_count,
                    "delete_deltas": None if seen is None else seen.decision.delete_delta_count,
                    "input_bytes": None if seen is None else seen.input_bytes,
                    "read_cost_bytes": None if seen is None else seen.read_cost_bytes,
                }
                for partition, kind, reason, seen in self.due()
            ],
        }


def diagnose(
    endpoint: Endpoint,
    selection: TableSelection,
    settings: CompactionSettings,
    observer: EvaluationObserver | None = None,
    health_location: str | None = None,
    *,
    try_storage: bool = False,
) -> Diagnosis:
    """Look at a metastore and the tables of a selection, and change nothing unless stores are to be tried.

    One read-only transaction is opened and ended at once, by which the metastore's clock is read.

    :param observer: is told of every partition.
    :param health_location: URI of the health store; None where it is not to be looked at.
    :param try_storage: write a small file where compactions exchange plans, on each store, and remove it.
    """
    findings: list[Finding] = []
    with endpoint.open() as client:
        site = _site(endpoint, client, selection, settings, Sightings(observer), findings)
        if site is None:
            return Diagnosis(tuple(findings), None)
        site = replace(site, health_location=health_location)
        for check in (*CHECKS, *(STORAGE_CHECKS if try_storage else ())):
            findings += check.findings(site)
        return Diagnosis(tuple(findings), site.evaluation)


def quick_look(endpoint: Endpoint, seconds: float = QUICK_SECONDS) -> tuple[Finding, ...]:
    """What is found without looking at any table.

    :param seconds: after so long no other check is begun; a call may take as long as the endpoint lets it.
    """
    deadline = time.monotonic() + seconds
    findings: list[Finding] = []
    with endpoint.open() as client:
        queue = _queue(endpoint, client, findings)
        if queue is None:
            return tuple(findings)
        now_ms = int(time.time() * 1000)
        no_table = Evaluation()
        site = Site(endpoint, client, queue, CompactionSettings(), _EVERY_TABLE, now_ms, now_ms, no_table)
        for check in QUICK_CHECKS:
            if time.monotonic() < deadline:
                findings += check.findings(site)
            else:
                findings.append(Finding(check.name, Severity.NOTE, f"is not looked at, for {seconds:.0f} s are over"))
    return tuple(findings)


def _site(
    endpoint: Endpoint,
    client: AcidMetastoreClient,
    selection: TableSelection,
    settings: CompactionSettings,
    sightings: Sightings,
    findings: list[Finding],
) -> Site | None:
    """What the checks look at, and what is found on the way there; None where it goes no further."""
    queue = _queue(endpoint, client, findings)
    if queue is None:
        return None
    try:
        with Supervised(TABLES):
            own_now_ms, now_ms = int(time.time() * 1000), client.server_now_ms()
            evaluation = Initiator(client, queue, settings, observer=sightings).evaluate(selection)
            told = f"{len(evaluation.evaluated)} partitions looked at, {len(evaluation.due)} due"
            findings.append(Finding(TABLES, Severity.OK, told))
    except AcidError as error:
        findings.append(_failed(TABLES, error, _NO_FURTHER))
        return None
    return Site(endpoint, client, queue, settings, selection, now_ms, own_now_ms, evaluation, sightings)


def _queue(endpoint: Endpoint, client: AcidMetastoreClient, findings: list[Finding]) -> CompactionQueue | None:
    """The queue of a metastore, which may be one that cannot be worked with; None where it goes no further."""
    check = ANSWERS
    try:
        with Supervised(check):
            hive = client.probe()
            findings.append(Finding(check, Severity.OK, f"Hive metastore {hive.version} answers"))
            check = USABLE
            queue = queue_of(client, endpoint.database, hive)
            findings.append(_usable(endpoint, client))
    except AcidError as error:
        findings.append(_failed(check, error, _NO_FURTHER))
        return None
    return queue


def _usable(endpoint: Endpoint, client: AcidMetastoreClient) -> Finding:
    try:
        endpoint.check(client)
    except AcidError as error:
        return _failed(USABLE, error, "sensor, operator and cleaner refuse this metastore")
    return Finding(USABLE, Severity.OK, "by sensor, operator and cleaner")


def _failed(check: str, error: AcidError, why: str) -> Finding:
    return Finding(check, Severity.PROBLEM, f"{error.subject}: {error.reason}", why, error.remedy)
